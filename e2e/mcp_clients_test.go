package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// nodeMCP is the folder of the MCP clients that others wrote, and the Node.js for them.
type nodeMCP struct{ dir, node string }

func mcpClients(t testing.TB) nodeMCP {
	t.Helper()
	dir := npmPackages(t, "testdata/mcp")
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	return nodeMCP{dir, filepath.Join(dir, "node_modules", "node-linux-"+arch, "bin", "node")}
}

// script is a package's file.
func (n nodeMCP) script(path string) string {
	return filepath.Join(n.dir, "node_modules", "@modelcontextprotocol", path)
}

// command runs a script of Node.js, which options of its own may precede, with nothing of ours in its environment.
func (n nodeMCP) command(t testing.TB, env []string, script string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.(*testing.T).Context(), n.node, append([]string{script}, args...)...)
	cmd.Env = append([]string{"PATH=" + filepath.Dir(n.node) + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	cmd.Dir = t.TempDir()
	return cmd
}

// agentSaw is what testdata/mcp/client.mjs prints.
type agentSaw struct {
	Asked []struct {
		Path   string
		Status int
		Form   map[string]string
	}
	Server, Instructions, Read string
	Tools, Resources           []string
	Calls                      map[string]struct {
		IsError           bool
		Content           []struct{ Text string }
		StructuredContent map[string]any
		Refused           string
		Message           string
	}
}

func (n nodeMCP) agent(t testing.TB, env ...string) (saw agentSaw) {
	t.Helper()
	dir := t.TempDir()
	script, err := os.ReadFile("testdata/mcp/client.mjs")
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(dir, "client.mjs"), script, 0o600), os.Symlink(filepath.Join(n.dir, "node_modules"), filepath.Join(dir, "node_modules")))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := n.command(t, env, filepath.Join(dir, "client.mjs"))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	if err := json.Unmarshal(out, &saw); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return saw
}

// The official TypeScript clients, both generations, list, read and call; without a credential they list and read. Their own OAuth
// code finds its way to a token for this server by itself.
func TestMCPTypeScriptClients(t *testing.T) {
	t.Parallel()
	n := mcpClients(t)
	s := start(t, options{})
	id := s.partner("harbour").submit(text("The pump of station two was overhauled.", nil))
	known := s.oauthClient("harbour", "ai_reader")
	for _, library := range []string{"@modelcontextprotocol/sdk", "@modelcontextprotocol/client"} {
		for who, env := range map[string][]string{
			"nobody": nil, "key": {"KEY=" + known.secret}, "oauth": {"CLIENT_ID=" + known.id, "CLIENT_SECRET=" + known.secret, "ISSUER=" + s.url},
		} {
			t.Run(library+" "+who, func(t *testing.T) {
				saw := n.agent(t, append(env, "CLIENT="+library, "URL="+s.url+"/mcp", "ORG=harbour", "UPLOAD="+id)...)
				if saw.Server != "accession" || saw.Instructions == "" || len(saw.Tools) != 4 || len(saw.Resources) != 4 || !strings.HasPrefix(saw.Read, "# Quick start") {
					t.Errorf("saw %+v", saw)
				}
				if len(saw.Calls) != 4 {
					t.Fatalf("calls %+v", saw.Calls)
				}
				for name, c := range saw.Calls {
					if who == "nobody" {
						if c.Refused == "" || !strings.Contains(c.Message, "authentication_required") {
							t.Errorf("%s: %+v", name, c)
						}
					} else if c.Refused != "" || c.IsError || c.StructuredContent == nil || len(c.Content) == 0 {
						t.Errorf("%s: %+v", name, c)
					}
				}
				if content := saw.Calls["get_ai_context"].Content; who != "nobody" && (len(content) != 2 || !strings.Contains(content[1].Text, "The pump of station two") || !strings.HasPrefix(content[1].Text, "=== BEGIN ")) {
					t.Errorf("context %+v", content)
				}
				var paths []string
				for _, a := range saw.Asked {
					if a.Form != nil && (a.Status != 200 || a.Form["grant_type"] != "client_credentials" || a.Form["resource"] != s.url+"/mcp") {
						t.Errorf("asked for a token by %+v", a)
					}
					paths = append(paths, a.Path)
				}
				for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/oauth/token"} {
					if slices.Contains(paths, path) != (who == "oauth") {
						t.Errorf("asked %v", paths)
					}
				}
			})
		}
	}
}

// The MCP inspector's command line lists, reads and calls, and has nothing to say against the schemas of the tools.
func TestMCPInspector(t *testing.T) {
	t.Parallel()
	n := mcpClients(t)
	s := start(t, options{})
	id := s.partner("harbour").submit(text("The pump of station two was overhauled.", nil))
	key := "x-api-key: " + s.issue("harbour", "ai_reader")
	for name, c := range map[string]struct {
		args  []string
		exit  int
		holds []string
	}{
		"list":      {[]string{"--method", "tools/list", "--strict"}, 0, []string{`"get_ai_context"`, `"readOnlyHint": true`, `"outputSchema"`}},
		"resources": {[]string{"--method", "resources/list"}, 0, []string{"accession://docs/quick-start"}},
		"read":      {[]string{"--method", "resources/read", "--uri", "accession://docs/boundary"}, 0, []string{"# Boundary"}},
		"call":      {[]string{"--header", key, "--method", "tools/call", "--tool-name", "get_ai_context", "--tool-arg", "org_id=harbour", "--tool-arg", "upload_id=" + id}, 0, []string{"The pump of station two", `"record_id"`}},
		"refused":   {[]string{"--stored-auth-only", "--method", "tools/call", "--tool-name", "get_capabilities"}, -1, []string{"auth_required"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := n.command(t, nil, n.script("inspector/clients/launcher/build/index.js"), append([]string{"--cli", s.url + "/mcp", "--transport", "http"}, c.args...)...)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			err := cmd.Run()
			if (err == nil) != (c.exit == 0) {
				t.Errorf("%v\n%s%s", err, &out, &errs)
			}
			for _, want := range c.holds {
				if !strings.Contains(out.String()+errs.String(), want) {
					t.Errorf("no %s in\n%s%s", want, &out, &errs)
				}
			}
			if name == "list" && strings.Contains(errs.String(), "Warning") {
				t.Errorf("%s", &errs)
			}
		})
	}
}
