package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// The parts of CycloneDX 1.6 that are needed here: https://cyclonedx.org/docs/1.6/json/
type bom struct {
	Schema      string      `json:"$schema"`
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Serial      string      `json:"serialNumber"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
	DependsOn   []dependent `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string       `json:"type"`
	Ref        string       `json:"bom-ref"`
	Name       string       `json:"name"`
	Version    string       `json:"version"`
	Scope      string       `json:"scope,omitempty"`
	Hashes     []hash       `json:"hashes,omitempty"`
	Licenses   []licensed   `json:"licenses,omitempty"`
	PackageURL string       `json:"purl,omitempty"`
	Properties []properties `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type licensed struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type properties struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependent struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// billOfMaterials is a CycloneDX document of what is linked into binary. Its serial number comes from the binary's digest.
func billOfMaterials(binary, version string, built time.Time, info *buildinfo.BuildInfo, modules []*module) ([]byte, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8, RFC 9562: of our own making
	b := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Serial: fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
	}
	sum = sha256.Sum256(content)
	subject := component{Type: "application", Name: "accession", Version: version, PackageURL: "pkg:golang/" + info.Main.Path + "@" + version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}, Licenses: licenses([]string{"Apache-2.0"})}
	subject.Ref = subject.PackageURL
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "GOAMD64", "GOARM64", "CGO_ENABLED":
			subject.Properties = append(subject.Properties, properties{"build:" + s.Key, s.Value})
		}
	}
	b.Metadata = metadata{built.Format(time.RFC3339), subject}
	needs := dependent{Ref: subject.Ref}
	for _, m := range modules {
		c := component{Type: "library", Name: m.path, Version: m.version, Scope: "required", PackageURL: "pkg:golang/" + m.path + "@" + m.version, Licenses: licenses(m.ids())}
		c.Ref = c.PackageURL
		if m.sum != "" { // go.sum's digest is over a listing of the module's files, so it is not a digest of a file
			c.Properties = []properties{{"go:sum", m.sum}}
		}
		b.Components = append(b.Components, c)
		b.DependsOn = append(b.DependsOn, dependent{Ref: c.Ref})
		needs.DependsOn = append(needs.DependsOn, c.Ref)
	}
	b.DependsOn = append([]dependent{needs}, b.DependsOn...)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(b); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func licenses(ids []string) (all []licensed) {
	for _, id := range ids {
		var l licensed
		l.License.ID = strings.TrimSpace(id)
		all = append(all, l)
	}
	return all
}
