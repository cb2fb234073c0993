package oidcinterop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Names that both sides use.
const (
	clientSecret = "hu+sh%/ :&=!" // the client must encode it, by the standard twice
	home         = "http://127.0.0.1:18472"
	callback     = home + "/signin/callback"
)

// providerConfig configures a provider; see provider.mjs.
type providerConfig struct {
	Issuer          string `json:"issuer"`
	Redirect        string `json:"redirect"`
	Secret          string `json:"secret"`
	Alg             string `json:"alg"`
	ClaimsInIDToken bool   `json:"claimsInIDToken"`
}

// providerProxy is a proxy with the public address of the provider.
type providerProxy struct {
	*testing.T
	URL   string // the issuer
	Front *httptest.Server

	mu        sync.Mutex
	target    *provider // nil: the provider is down
	hits      map[string]int
	overrides map[string]http.HandlerFunc // replaces the provider, by path
}

// provider is the process of the provider.
type provider struct {
	Addr, Version string

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer
}

// internalHeader tells the reverse proxy the current address of the provider.
const internalHeader = "X-Inside"

// newProxy starts a proxy without a provider.
func newProxy(t *testing.T) *providerProxy {
	t.Helper()
	p := &providerProxy{T: t, hits: make(map[string]int), overrides: make(map[string]http.HandlerFunc)}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		// as a browser sees it
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", r.In.Header.Get(internalHeader), r.In.Host
		r.Out.Header.Del(internalHeader)
	}}
	p.Front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside, other := p.serve(r.URL.Path)
		switch {
		case inside == nil:
			panic(http.ErrAbortHandler) // closes the connection
		case other != nil:
			other(w, r)
			return
		}
		r.Header.Set(internalHeader, inside.Addr)
		proxy.ServeHTTP(w, r)
	}))
	p.URL = p.Front.URL
	t.Cleanup(p.Front.Close)
	return p
}

// startProxy starts a proxy with a provider.
func startProxy(t *testing.T, o providerConfig) *providerProxy {
	t.Helper()
	p := newProxy(t)
	p.start(o)
	return p
}

func (p *providerProxy) serve(path string) (*provider, http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hits[path]++
	return p.target, p.overrides[path]
}

// override replaces the response of a path, for behaviour that this provider does not have.
func (p *providerProxy) override(path string, answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.overrides[path] = answer
}

// hitCount returns the number of requests for a path.
func (p *providerProxy) hitCount(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits[path]
}

// start starts a provider with new keys. It ends with the test at the latest.
func (p *providerProxy) start(o providerConfig) {
	p.Helper()
	o.Issuer, o.Redirect, o.Secret = p.URL, callback, clientSecret
	started := startProvider(p.T, o)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = started
}

// stop stops the provider, which loses everything including its keys.
func (p *providerProxy) stop() {
	p.Helper()
	p.mu.Lock()
	inside := p.target
	p.target = nil
	p.mu.Unlock()
	inside.stop(p.T)
}

func startProvider(t *testing.T, o providerConfig) *provider {
	t.Helper()
	install(t)
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{cmd: exec.CommandContext(t.Context(), "node", "provider.mjs", string(text))}
	p.cmd.Dir, p.cmd.Stderr = "provider", &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(out).Decode(p); err != nil {
		_ = p.cmd.Wait()
		t.Fatalf("the provider did not start: %v\n%s", err, &p.stderr)
	}
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("the provider %s said:\n%s", p.Version, &p.stderr)
		}
	})
	return p
}

// stop ends the process once.
func (p *provider) stop(t *testing.T) {
	t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil && t.Context().Err() == nil {
		t.Errorf("the provider ended with %v\n%s", err, &p.stderr)
	}
}

// installing runs the installation once.
var installing = sync.OnceValue(func() error {
	lock, err := os.Stat(filepath.Join("provider", "package-lock.json"))
	if err != nil {
		return err
	}
	// npm records what it has installed
	done, err := os.Stat(filepath.Join("provider", "node_modules", ".package-lock.json"))
	if err == nil && !done.ModTime().Before(lock.ModTime()) {
		return nil
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = "provider"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci (requires Node 20 with npm, and the registry the first time): %w\n%s", err, out)
	}
	return nil
})

// install runs npm ci for the provider unless it is installed. Without Node these tests fail; they
// do not skip.
func install(t *testing.T) {
	t.Helper()
	if err := installing(); err != nil {
		t.Fatal(err)
	}
}

// A lock file that names a mirror would send every user there, and one without digests would accept
// any content.
func TestPackageLock_HasDigestsAndNoHost(t *testing.T) {
	var lock struct {
		Packages map[string]struct{ Resolved, Integrity string }
	}
	text, err := os.ReadFile(filepath.Join("provider", "package-lock.json"))
	if err == nil {
		err = json.Unmarshal(text, &lock)
	}
	if err != nil || len(lock.Packages) < 3 {
		t.Fatal(err, len(lock.Packages))
	}
	for name, p := range lock.Packages {
		if p.Resolved != "" && !strings.HasPrefix(p.Resolved, "https://registry.npmjs.org/") {
			t.Errorf("%s comes from %s", name, p.Resolved)
		}
		if name != "" && p.Integrity == "" {
			t.Errorf("%s has no digest", name)
		}
	}
}
