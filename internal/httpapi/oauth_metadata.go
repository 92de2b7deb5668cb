package httpapi

import (
	"context"
	"encoding/json"

	"github.com/accession/accession/internal/custody"
)

// serverMetadata describes the authorization server. (RFC 8414, section 2.) authorization_endpoint and
// code_challenge_methods_supported are there because MCP clients refuse a document without them, machine-to-machine too.
type serverMetadata struct {
	Issuer                  string   `json:"issuer" format:"uri"`
	AuthorizationEndpoint   string   `json:"authorization_endpoint" format:"uri" doc:"Only answers an error: there is no authorization flow."`
	TokenEndpoint           string   `json:"token_endpoint" format:"uri"`
	KeySetURI               string   `json:"jwks_uri" format:"uri"`
	RevocationEndpoint      string   `json:"revocation_endpoint" format:"uri"`
	IntrospectionEndpoint   string   `json:"introspection_endpoint" format:"uri"`
	GrantTypes              []string `json:"grant_types_supported" nullable:"false"`
	ResponseTypes           []string `json:"response_types_supported" nullable:"false" doc:"Empty: there is no authorization flow."`
	CodeChallengeMethods    []string `json:"code_challenge_methods_supported" nullable:"false"`
	TokenAuthMethods        []string `json:"token_endpoint_auth_methods_supported" nullable:"false"`
	RevocationAuthMethods   []string `json:"revocation_endpoint_auth_methods_supported" nullable:"false"`
	IntrospectionAuthMethod []string `json:"introspection_endpoint_auth_methods_supported" nullable:"false"`
	Scopes                  []string `json:"scopes_supported" nullable:"false"`
}

// resourceMetadata describes a resource that access tokens are good for. (RFC 9728, section 2.)
type resourceMetadata struct {
	Resource             string   `json:"resource" format:"uri"`
	ResourceName         string   `json:"resource_name"`
	AuthorizationServers []string `json:"authorization_servers" nullable:"false"`
	Scopes               []string `json:"scopes_supported" nullable:"false"`
	BearerMethods        []string `json:"bearer_methods_supported" nullable:"false"`
}

// keySet stands for a JSON Web Key Set in the document. (RFC 7517.)
type keySet struct {
	Keys []publicKey `json:"keys" nullable:"false" doc:"By use, newest first; one that is not yet used to sign may be among them."`
}

type publicKey struct {
	Type      string `json:"kty" enum:"RSA,OKP"`
	Use       string `json:"use" enum:"sig"`
	Algorithm string `json:"alg" enum:"RS256,EdDSA" doc:"RS256 signs access tokens, EdDSA withdrawal receipts."`
	ID        string `json:"kid"`
	Modulus   string `json:"n,omitempty" doc:"Of an RSA key."`
	Exponent  string `json:"e,omitempty" doc:"Of an RSA key."`
	Curve     string `json:"crv,omitempty" enum:"Ed25519"`
	PublicKey string `json:"x,omitempty" doc:"Of an Ed25519 key."`
}

// scopesSupported are section 5, rule 4, in its order.
var scopesSupported = []string{
	string(custody.ScopeCustomerUpload), string(custody.ScopeMetadataRead), string(custody.ScopeAIReadiness), string(custody.ScopeAIContext),
	string(custody.ScopeMCP), string(custody.ScopeCorrection), string(custody.ScopeExternalReference),
}

func (s oauth) serverMetadata() serverMetadata {
	methods := []string{"client_secret_basic", "client_secret_post"}
	return serverMetadata{
		Issuer: s.baseURL, AuthorizationEndpoint: s.baseURL + "/oauth/authorize", TokenEndpoint: s.baseURL + "/oauth/token", KeySetURI: s.baseURL + "/oauth/jwks",
		RevocationEndpoint: s.baseURL + "/oauth/revoke", IntrospectionEndpoint: s.baseURL + "/oauth/introspect",
		GrantTypes: []string{"client_credentials"}, ResponseTypes: []string{}, CodeChallengeMethods: []string{"S256"},
		TokenAuthMethods: methods, RevocationAuthMethods: methods, IntrospectionAuthMethod: methods, Scopes: scopesSupported,
	}
}

// mcpScopes are those of the tools: a client asks for all that it finds here, and is refused one that its credential lacks.
var mcpScopes = []string{string(custody.ScopeMCP), string(custody.ScopeAIContext), string(custody.ScopeMetadataRead)}

func (s oauth) resourceMetadata(resource string, scopes []string) resourceMetadata {
	return resourceMetadata{
		Resource: resource, ResourceName: "accession", AuthorizationServers: []string{s.baseURL}, Scopes: scopes, BearerMethods: []string{"header"},
	}
}

// fixed is a document that never changes.
func fixed(document any) func(context.Context) (json.RawMessage, error) {
	b, err := marshal(document)
	return func(context.Context) (json.RawMessage, error) { return b, err }
}
