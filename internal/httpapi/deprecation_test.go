package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// The operations and fields here exist in these tests alone.

type oldQuery struct {
	Old string `query:"old" deprecated:"true" since:"2027-01-01" sunset:"2027-07-01" replacement:"new"`
}

type oldAnswer struct {
	Inner []oldInner `json:"inner"`
}

type oldInner struct {
	Former string `json:"former" doc:"What it was." deprecated:"true" since:"2027-01-01" sunset:"2027-06-01" replacement:"latter"`
}

type noFields struct{}

func day(text string) time.Time {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return t
}

// retiringDoor is a door with one operation, served over HTTP.
func retiringDoor[In any](t *testing.T, op operation) (*door, string) {
	t.Helper()
	d := &door{cfg: Config{Log: slog.New(slog.DiscardHandler)}.withDefaults(), mux: http.NewServeMux()}
	d.api = humago.New(d.mux, contract("http://custody.example"))
	op.name, op.method, op.tag, op.public = "oldOperation", http.MethodGet, "discovery", true
	op.path = "/api/v1/old"
	mount(d, op, func(context.Context, *exchange, *In) (answer, error) { return respond(struct{}{}) })
	(&discovery{}).mount(d)
	server := httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(server.Close)
	return d, server.URL
}

func TestRetiringOperation(t *testing.T) {
	r := &retirement{day("2027-01-01"), day("2027-04-01"), "newOperation"} // 90 days
	d, url := retiringDoor[struct {
		Number int `query:"number"`
	}](t, operation{retires: r, answers: map[int]reflect.Type{200: says[noFields]()}})
	if d.mistakes != nil {
		t.Fatal(d.mistakes)
	}
	for query, status := range map[string]int{"": 200, "?number=x": 400} {
		res, err := http.Get(url + "/api/v1/old" + query)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if h := res.Header; res.StatusCode != status || h.Get("Deprecation") != "@1798761600" || h.Get("Sunset") != "Thu, 01 Apr 2027 00:00:00 GMT" ||
			!strings.Contains(h.Get("Link"), `rel="deprecation"`) {
			t.Errorf("%d %v", res.StatusCode, h)
		}
	}
	op := d.api.OpenAPI().Paths["/api/v1/old"].Get
	if !op.Deprecated || !strings.Contains(op.Description, "since 2027-01-01") || !strings.Contains(op.Description, "on 2027-04-01") || !strings.Contains(op.Description, "newOperation") {
		t.Errorf("the document says deprecated %v: %s", op.Deprecated, op.Description)
	}
	if h := op.Responses["200"].Headers; h["Deprecation"] == nil || h["Sunset"] == nil {
		t.Errorf("the document lacks the headers: %v", h)
	}
	res, err := http.Get(url + "/api/v1/ai/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if raw, err := io.ReadAll(res.Body); err != nil || res.Header.Get("Deprecation") != "" || strings.Count(string(raw), `"deprecated":true`) != 1 {
		t.Errorf("another operation is retiring: %v, %v", res.Header, err)
	}
}

func TestRetiringFields(t *testing.T) {
	d, url := retiringDoor[oldQuery](t, operation{answers: map[int]reflect.Type{200: says[oldAnswer]()}})
	if d.mistakes != nil {
		t.Fatal(d.mistakes)
	}
	res, err := http.Get(url + "/api/v1/old")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.Header.Get("Sunset") != "Tue, 01 Jun 2027 00:00:00 GMT" { // the first of two
		t.Errorf("Sunset %q", res.Header.Get("Sunset"))
	}
	doc := d.api.OpenAPI()
	if op := doc.Paths["/api/v1/old"].Get; op.Deprecated || !op.Parameters[0].Deprecated || !strings.Contains(op.Parameters[0].Description, "Use new instead.") {
		t.Errorf("operation %v, parameter %+v", op.Deprecated, op.Parameters[0])
	}
	raw, err := json.Marshal(doc.Components.Schemas)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), `"deprecated":true,"description":"Deprecated since 2027-01-01; goes on 2027-06-01 at the earliest. Use latter instead. What it was."`) {
		t.Errorf("the field is not marked: %s", raw)
	}
}

func TestRetirementNeedsItsNotice(t *testing.T) {
	type early struct {
		Old string `query:"old" deprecated:"true" since:"2027-01-01" sunset:"2027-03-31" replacement:"new"`
	}
	type undated struct {
		Old string `query:"old" deprecated:"true"`
	}
	operationOf := func(r *retirement) operation {
		return operation{retires: r, answers: map[int]reflect.Type{200: says[noFields]()}}
	}
	for name, c := range map[string]struct {
		mount func() *door
		says  string
	}{
		"89 days": {func() *door {
			d, _ := retiringDoor[struct{}](t, operationOf(&retirement{day("2027-01-01"), day("2027-03-31"), "x"}))
			return d
		}, "at least 90 days"},
		"no day": {func() *door { d, _ := retiringDoor[struct{}](t, operationOf(&retirement{replacement: "x"})); return d }, "since when"},
		"no replacement": {func() *door {
			d, _ := retiringDoor[struct{}](t, operationOf(&retirement{day("2027-01-01"), day("2028-01-01"), ""}))
			return d
		}, "replacement"},
		"field, 89 days":      {func() *door { d, _ := retiringDoor[early](t, operationOf(nil)); return d }, "at least 90 days"},
		"field without a day": {func() *door { d, _ := retiringDoor[undated](t, operationOf(nil)); return d }, "must be a day"},
	} {
		if err := c.mount().mistakes; err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
