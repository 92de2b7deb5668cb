package client_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

const (
	receiptHeader   = `{"alg":"EdDSA","kid":"key_1","typ":"accession-receipt+json"}`
	receiptDocument = `{"withdrawal_receipt_id":"rct_1","issuer":"https://custody.example","upload_id":"up_1","org_id":"harbour","requested_by":"admin","reason":"moved out","requested_at":"2026-11-20T09:40:00Z","withdrawn_at":"2026-11-20T09:40:01.5Z","quota_bytes":12,"deletions":[{"backend":"staging","objects":2,"bytes":99,"confirmation":"listing read back empty","confirmed_at":"2026-11-20T09:40:01Z"}],"key_destroyed_at":"2026-11-20T09:40:01Z","key_backup_horizon":"PT720H","recalled":[],"remains":[{"what":"this receipt"}],"later":{"a":1}}`
)

var receiptKey = ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// signReceipt signs with the bare primitives of RFC 7515 and 8037.
func signReceipt(header, document string) string {
	text := b64(header) + "." + b64(document)
	return text + "." + b64(string(ed25519.Sign(receiptKey, []byte(text))))
}

func receiptKeySet(members ...string) []byte {
	return []byte(`{"keys":[{"kty":"RSA","kid":"key_0","n":"AQAB","e":"AQAB"},` + strings.Join(members, ",") + `]}`)
}

func receiptJWK(kid string, key ed25519.PrivateKey) string {
	return fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","use":"sig","alg":"EdDSA","kid":%q,"x":%q}`, kid, b64(string(key.Public().(ed25519.PublicKey))))
}

// A verified receipt is the document that was signed; fields of later versions are left aside.
func TestVerifyReceipt(t *testing.T) {
	for name, signed := range map[string]string{
		"as it is":            signReceipt(receiptHeader, receiptDocument),
		"from a file":         signReceipt(receiptHeader, receiptDocument) + "\n",
		"header in any order": signReceipt(`{"typ":"accession-receipt+json","kid":"key_1","alg":"EdDSA"}`, receiptDocument),
	} {
		r, err := client.VerifyReceipt(signed, receiptKeySet(receiptJWK("key_1", receiptKey)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var want client.Receipt
		if err := json.Unmarshal([]byte(receiptDocument), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*r, want) || r.QuotaBytes != 12 || r.Deletions[0].Objects != 2 || r.RequestedBy != "admin" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestNoOtherByteVerifies(t *testing.T) {
	signed, keys := signReceipt(receiptHeader, receiptDocument), receiptKeySet(receiptJWK("key_1", receiptKey))
	for i := range signed {
		for _, other := range []byte{'A', 'B', '.', '\n', signed[i] ^ 0x20, signed[i] ^ 1} {
			if other == signed[i] {
				continue
			}
			changed := signed[:i] + string(rune(other)) + signed[i+1:]
			if strings.TrimSpace(changed) == strings.TrimSpace(signed) {
				continue
			}
			if r, err := client.VerifyReceipt(changed, keys); r != nil || !errors.Is(err, client.ErrReceiptInvalid) {
				t.Fatalf("byte %d as %q: %v, %v", i, other, r, err)
			}
		}
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, signed[len(signed)-1]) // its lower four bits stand for nothing
	if _, err := client.VerifyReceipt(signed[:len(signed)-1]+alphabet[last+1:last+2], keys); err == nil {
		t.Error("another spelling of the signature verifies")
	}
	for i := range len(signed) - 1 {
		if _, err := client.VerifyReceipt(signed[:i], keys); err == nil {
			t.Fatalf("its first %d bytes verify", i)
		}
	}
}

func TestReceiptsThatDoNotVerify(t *testing.T) {
	good, jwk := signReceipt(receiptHeader, receiptDocument), receiptJWK("key_1", receiptKey)
	keys := receiptKeySet(jwk)
	stranger := ed25519.NewKeyFromSeed([]byte(strings.Repeat("s", ed25519.SeedSize)))
	header := func(old, new string) string {
		return signReceipt(strings.Replace(receiptHeader, old, new, 1), receiptDocument)
	}
	document := func(old, new string) string {
		return signReceipt(receiptHeader, strings.Replace(receiptDocument, old, new, 1))
	}
	key := func(old, new string) []byte { return receiptKeySet(strings.Replace(jwk, old, new, 1)) }
	for what, c := range map[string]struct {
		signed string
		keys   []byte
		says   string
	}{
		"nothing":                       {"", keys, "three parts"},
		"four parts":                    {good + ".", keys, "three parts"},
		"padding":                       {good + "=", keys, "base64url"},
		"a line end within":             {good[:9] + "\n" + good[9:], keys, "base64url"},
		"alg none":                      {header("EdDSA", "none"), keys, "alg"},
		"alg of another":                {header("EdDSA", "HS256"), keys, "alg"},
		"another typ":                   {header("accession-receipt+json", "at+jwt"), keys, "typ"},
		"no typ":                        {header(`,"typ":"accession-receipt+json"`, ""), keys, "exactly"},
		"no kid":                        {header(`"kid":"key_1",`, ""), keys, "exactly"},
		"an empty kid":                  {header("key_1", ""), keys, "exactly"},
		"crit":                          {header(`"kid"`, `"crit":["b64"],"kid"`), keys, "exactly"},
		"a key of its own":              {header(`"kid"`, `"jwk":{},"kid"`), keys, "exactly"},
		"alg twice":                     {header(`"kid"`, `"alg":"EdDSA","kid"`), keys, "two members"},
		"alg twice, another case":       {header(`"kid"`, `"ALG":"none","kid"`), keys, "two members"},
		"a header that is an array":     {signReceipt(`["EdDSA"]`, receiptDocument), keys, "no JSON object"},
		"a header that goes on":         {signReceipt(receiptHeader+"{}", receiptDocument), keys, "goes on"},
		"an unknown key":                {header("key_1", "key_2"), keys, "not in the key set"},
		"an RSA key":                    {header("key_1", "key_0"), keys, "no Ed25519"},
		"a stranger's key":              {good, receiptKeySet(receiptJWK("key_1", stranger)), "signature"},
		"two keys of one id":            {good, receiptKeySet(jwk, receiptJWK("key_1", stranger)), "two keys"},
		"a key for encryption":          {good, key(`"sig"`, `"enc"`), "no Ed25519"},
		"a key of another curve":        {good, key("Ed25519", "Ed448"), "no Ed25519"},
		"a key of another algorithm":    {good, key(`"EdDSA"`, `"ES256"`), "no Ed25519"},
		"a key cut short":               {good, key(`"x":"`, `"x":"AAAA","y":"`), "no Ed25519"},
		"a key with two x":              {good, key(`"x":`, `"x":"AAAA","x":`), "two members"},
		"no key set":                    {good, nil, "key set"},
		"a key set without keys":        {good, []byte(`{}`), "no keys"},
		"a key set that is HTML":        {good, []byte(`<html>`), "key set"},
		"a key set too large":           {good, append(keys, strings.Repeat(" ", client.MaxKeySetBytes)...), "too large"},
		"a receipt too large":           {good + strings.Repeat("A", client.MaxReceiptBytes), keys, "too large"},
		"upload_id twice":               {document(`"org_id"`, `"upload_id":"up_2","org_id"`), keys, "two members"},
		"objects twice, within":         {document(`"bytes":99`, `"bytes":99,"objects":3`), keys, "two members"},
		"a document nested very deep":   {document(`{"a":1}`, strings.Repeat("[", 40)+strings.Repeat("]", 40)), keys, "too deep"},
		"a document that is no receipt": {signReceipt(receiptHeader, `{"sub":"me"}`), keys, "no whole receipt"},
		"a document that is no JSON":    {signReceipt(receiptHeader, `receipt`), keys, "no JSON"},
		"a document that is not UTF-8":  {document("moved", "\xff"), keys, "UTF-8"},
		"a receipt without deletions":   {document(`"deletions"`, `"deletion"`), keys, "no whole receipt"},
	} {
		r, err := client.VerifyReceipt(c.signed, c.keys)
		if r != nil || !errors.Is(err, client.ErrReceiptInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v; want %q", what, r, err, c.says)
		}
	}
}

func FuzzVerifyReceipt(f *testing.F) {
	good := signReceipt(receiptHeader, receiptDocument)
	keys := receiptKeySet(receiptJWK("key_1", receiptKey))
	f.Add(good, keys)
	f.Add("a.b.c", []byte(`{"keys":[{}]}`))
	f.Fuzz(func(t *testing.T, signed string, set []byte) {
		if _, err := client.VerifyReceipt(signed, keys); err == nil && strings.TrimSpace(signed) != good {
			t.Errorf("verifies: %q", signed)
		}
		_, _ = client.VerifyReceipt(good, set)
	})
}
