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

// The names that both sides know.
const (
	clientSecret = "hu+sh%/ :&=!" // a client has to encode it, by the standard twice
	home         = "http://127.0.0.1:18472"
	callback     = home + "/signin/callback"
)

// providerConfig is how a provider should be; see provider.mjs.
type providerConfig struct {
	Issuer          string `json:"issuer"`
	Redirect        string `json:"redirect"`
	Secret          string `json:"secret"`
	Alg             string `json:"alg"`
	ClaimsInIDToken bool   `json:"claimsInIDToken"`
}

// providerProxy is the provider, as others find it.
type providerProxy struct {
	*testing.T
	URL   string // its issuer
	Front *httptest.Server

	mu        sync.Mutex
	target    *provider // nil: it is down
	hits      map[string]int
	overrides map[string]http.HandlerFunc // who answers in the provider's place, by path
}

// provider is a process.
type provider struct {
	Addr, Version string

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer
}

// internalHeader is how the door tells the proxy behind it where the provider is now.
const internalHeader = "X-Inside"

// newProxy opens a door with nothing behind it.
func newProxy(t *testing.T) *providerProxy {
	t.Helper()
	p := &providerProxy{T: t, hits: make(map[string]int), overrides: make(map[string]http.HandlerFunc)}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", r.In.Header.Get(internalHeader), r.In.Host // as a browser sees it
		r.Out.Header.Del(internalHeader)
	}}
	p.Front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside, other := p.serve(r.URL.Path)
		switch {
		case inside == nil:
			panic(http.ErrAbortHandler) // the connection ends
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

// startProxy opens a door with a provider behind it.
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

// instead lets somebody else answer at a path: a provider that does what this one never would.
func (p *providerProxy) override(path string, answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.overrides[path] = answer
}

// visited counts how often somebody came to a path.
func (p *providerProxy) hitCount(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits[path]
}

// start starts a provider, with keys of its own. It ends with the test if nobody stops it before.
func (p *providerProxy) start(o providerConfig) {
	p.Helper()
	o.Issuer, o.Redirect, o.Secret = p.URL, callback, clientSecret
	started := startProvider(p.T, o)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = started
}

// stop ends the provider. It forgets everything, its keys too.
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

// stop ends the process, once.
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

// installing is done once, whoever comes first.
var installing = sync.OnceValue(func() error {
	lock, err := os.Stat(filepath.Join("provider", "package-lock.json"))
	if err != nil {
		return err
	}
	done, err := os.Stat(filepath.Join("provider", "node_modules", ".package-lock.json")) // npm notes what it has installed
	if err == nil && !done.ModTime().Before(lock.ModTime()) {
		return nil
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = "provider"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci (it needs Node 20 with npm, and the registry the first time): %w\n%s", err, out)
	}
	return nil
})

// install has npm install the provider, as the lock file says, unless it is there. Without Node these tests fail; they do not skip.
func install(t *testing.T) {
	t.Helper()
	if err := installing(); err != nil {
		t.Fatal(err)
	}
}

// A lock file that names a mirror would send everybody there, and one without digests would take what it is given.
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
			t.Errorf("%s is not held by a digest", name)
		}
	}
}
