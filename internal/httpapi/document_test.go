package httpapi

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/accession/accession/internal/custody"
)

func TestDocument(t *testing.T) {
	b := newBench(t) // the document is valid OpenAPI, or this fails
	raw := string(b.call("GET", "/api/v1/ai/openapi.json", nil).raw)
	for _, want := range []string{`"openapi":"3.1.0"`, `"version":"v1-phase28"`, `"const":true`, `"url":"` + b.url + `"`,
		`"operationId":"putPartnerUploadPartByPath"`, `"operationId":"completePartnerUploadByPath"`} {
		if !strings.Contains(raw, want) {
			t.Errorf("the document lacks %s", want)
		}
	}
	for _, never := range []string{`"422"`, `"default":{`, "QueryNumber", "$schema"} {
		if strings.Contains(raw, never) {
			t.Errorf("the document holds %s", never)
		}
	}
	for _, c := range custody.Codes {
		if !strings.Contains(raw, `"`+string(c.Code)+`"`) {
			t.Errorf("the code %s is not published", c.Code)
		}
	}
	for _, op := range []custody.Operation{custody.OpIssueCredential, custody.OpInitiateUpload, custody.OpPutPart, custody.OpCompleteUpload,
		custody.OpUploadStatus, custody.OpWithdrawUpload, custody.OpQuota, custody.OpAIContext, custody.OpRequestRecords} {
		if !strings.Contains(raw, `"operationId":"`+string(op)+`"`) {
			t.Errorf("the operation %s is not published", op)
		}
	}
}

func TestDocumentedStatusesHaveMeaning(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 405, 408, 409, 411, 413, 415, 429, 431, 500, 502, 503, 507} {
		if meaning(status) == "" {
			t.Errorf("no code goes with %d", status)
		}
	}
	if got := (operation{body: bodyPart, failures: []int{409}}).statuses(); !slices.Equal(got, []int{400, 401, 408, 409, 411, 413, 415, 429, 431, 500, 503}) {
		t.Errorf("statuses %v", got)
	}
}

// Behind the door stays what requests are checked against, to its last part, and nothing that the document alone says.
func TestDocumentIsForgotten(t *testing.T) {
	type part struct {
		Name string `json:"name" minLength:"2"`
	}
	type mark struct {
		Name string `json:"name" minLength:"2"`
	}
	type folder struct {
		Parts  []part          `json:"parts,omitempty"`
		ByName map[string]mark `json:"by_name,omitempty"`
	}
	type asked struct {
		Folder folder `json:"folder"`
	}
	type answered struct {
		Folder folder `json:"folder"`
	}
	type input struct{ Body asked }
	d := &door{cfg: Config{Log: slog.New(slog.DiscardHandler)}.withDefaults(), mux: http.NewServeMux()}
	d.api = humago.New(d.mux, contract("http://custody.example"))
	mount(d, operation{
		name: "putFolder", method: http.MethodPut, path: "/api/v1/folder", tag: "discovery", public: true, body: bodyJSON,
		answers: map[int]reflect.Type{200: says[answered]()},
	}, func(context.Context, *exchange, *input) (answer, error) { return respond(struct{}{}) })
	s := &discovery{}
	s.mount(d)
	forget(d.api.OpenAPI())

	for _, name := range []string{`"Asked":`, `"Answered":`} {
		if !strings.Contains(string(s.document), name) {
			t.Errorf("the published document lacks %s", name)
		}
	}
	if kept := slices.Sorted(maps.Keys(d.api.OpenAPI().Components.Schemas.Map())); !slices.Equal(kept, []string{"Asked", "Folder", "Mark", "Part"}) {
		t.Errorf("schemas of %v are kept", kept)
	}
	for _, p := range d.api.OpenAPI().Paths {
		for _, op := range operationsOf(p) {
			if op.Responses != nil {
				t.Errorf("the answers of %s are kept", op.OperationID)
			}
		}
	}
	server := httptest.NewServer(http.HandlerFunc(d.serve))
	defer server.Close()
	for body, says := range map[string]string{
		`{"folder":{"parts":[{"name":"ab"}],"by_name":{"x":{"name":"ab"}}}}`: `"data"`,
		`{"folder":{"parts":[{"name":"a"}]}}`:                                `"/folder/parts/0/name"`,
		`{"folder":{"by_name":{"x":{"name":"a"}}}}`:                          `"/folder/by_name/x/name"`,
	} {
		r, err := http.NewRequest(http.MethodPut, server.URL+"/api/v1/folder", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(raw), says) {
			t.Errorf("%s: %s, %v; want %s", body, raw, err, says)
		}
	}
}
