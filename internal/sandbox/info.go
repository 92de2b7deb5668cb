package sandbox

import "time"

// Environment names the sandbox. (Section 2.7.)
const Environment = "sandbox"

// StatusAvailable is the status of the sandbox and of its key flow while the service answers.
const StatusAvailable = "available"

// Endpoints are the absolute URIs of the sandbox's operations; the door that serves them knows them.
type Endpoints struct {
	Credential string // issues credentials, by POST
	Echo       string
}

// Info describes the sandbox to a stranger. (Section 2.7, sandbox info.)
type Info struct {
	Environment          string // Environment
	Status               string // StatusAvailable
	ProductionDataAccess bool   // always false
	CredentialEndpoint   string // absolute URI
	EchoEndpoint         string // absolute URI
	CustomerUploads      bool   // always false
	AIContext            bool   // always false
	Limits               *Limits
}

// KeyInfo describes how a sandbox credential is had; it issues none. (Section 2.7, sandbox key info.)
type KeyInfo struct {
	Method               string // POST
	Endpoint             string // absolute URI
	Free                 bool   // always true
	ProductionDataAccess bool   // always false
	Status               string // StatusAvailable
	AccountRequired      bool   // always false
	CredentialScope      string // Scope
	Limits               *Limits
}

// Limits of the sandbox, as answers show them unless include_limits is false; how often one may ask is the door's.
// (Sections 4.2 and 8.)
type Limits struct {
	MaxInputCharacters int // Unicode code points of one input
	MinOperations      int // of a batch
	MaxOperations      int // of a batch
	CredentialLifetime time.Duration
}

// Info describes the sandbox; Limits is nil without includeLimits.
func (s *Service) Info(at Endpoints, includeLimits bool) Info {
	return Info{
		Environment: Environment, Status: StatusAvailable,
		CredentialEndpoint: at.Credential, EchoEndpoint: at.Echo, Limits: s.limits(includeLimits),
	}
}

// KeyInfo describes the key flow; Limits is nil without includeLimits.
func (s *Service) KeyInfo(at Endpoints, includeLimits bool) KeyInfo {
	return KeyInfo{
		Method: "POST", Endpoint: at.Credential, Free: true, Status: StatusAvailable, CredentialScope: Scope,
		Limits: s.limits(includeLimits),
	}
}

func (s *Service) limits(include bool) *Limits {
	if !include {
		return nil
	}
	return &Limits{MaxInputCharacters, MinOperations, MaxOperations, s.lifetime}
}
