package httpapi

import (
	"slices"
	"strings"
	"testing"

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
