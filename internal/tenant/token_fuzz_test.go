package tenant_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// Of everything that is near a good credential, a good access token or the admin token, only these themselves are taken, in the one
// spelling that they were given out in; all else is refused alike.
func FuzzTokens(f *testing.F) {
	o := open(f)
	id, secret := o.issue(f, "acme", custody.RoleAIReader)
	good := []string{secret, grant(f, o.Service, id, secret, ask).Token, adminToken}
	owner := []string{id, id, custody.AdminCredentialID}
	f.Add(uint8(3), uint16(0), "", uint16(0))
	for i, token := range good {
		f.Add(uint8(i), uint16(0), token[:1], uint16(1)) // the token itself
		for _, at := range []int{0, 4, len(token) / 2, len(token) - 44, len(token) - 1, len(token)} {
			f.Add(uint8(i), uint16(max(0, at)), "A", uint16(1))
			f.Add(uint8(i), uint16(max(0, at)), "\n", uint16(0))
			f.Add(uint8(i), uint16(max(0, at)), "", uint16(3))
		}
	}
	for _, token := range []string{
		"acc_", "sbx_", "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0.eyJzdWIiOiJhIn0.", "eyJhbGciOiJIUzI1NiIsInR5cCI6ImF0K2p3dCJ9.e30.AAAA", "a.b.c", "....", `{"payload":"e30","signatures":[]}`, strings.Repeat("acc_", 1000),
		"eyJhbGciOiJSUzI1NiIsInR5cCI6ImF0K2p3dCIsImp3ayI6e319.e30.AAAA",
	} {
		f.Add(uint8(3), uint16(0), token, uint16(0))
	}
	_, refused := o.Authenticate(f.Context(), "acc_garbage")
	f.Fuzz(func(t *testing.T, which uint8, at uint16, put string, gone uint16) {
		token := put
		if int(which) < len(good) {
			whole := good[which]
			from := min(int(at), len(whole))
			token = whole[:from] + put + whole[min(from+int(gone), len(whole)):]
		}
		c, err := o.Authenticate(t.Context(), token)
		for i, g := range good {
			if token == g {
				if err != nil || c.CredentialID != owner[i] || c.Admin != (i == 2) {
					t.Fatalf("a good token: %+v, %v", c, err)
				}
				return
			}
		}
		if err == nil || !reflect.DeepEqual(c, custody.Caller{}) {
			t.Fatalf("%q is taken for %+v", token, c)
		}
		if token != "" && !reflect.DeepEqual(err, refused) {
			t.Errorf("%q is refused as %v", token, err)
		}
	})
}
