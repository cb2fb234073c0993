package app

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/cli/operatorcmd"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/demo"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/oidctest"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/sample"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// settingsOf loads a configuration from variables, with free ports and its own store.
func settingsOf(t *testing.T, environ ...string) *config.Config {
	t.Helper()
	c, err := config.Load(config.Source{Environ: append([]string{
		"FERMATA_STORE_URL=sqlite:" + filepath.Join(t.TempDir(), "f.db"), "FERMATA_LISTEN_ADDR=127.0.0.1:0", "FERMATA_METRICS_ADDR=off",
	}, environ...)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// startOf starts a server, which serves until the test ends.
func startOf(t *testing.T, c *config.Config, graphs ...inproc.Graph) (*serve.Server, *syncBuffer) {
	t.Helper()
	press, err := sample.Press()
	if err != nil {
		t.Fatal(err)
	}
	return startProgram(t, c, &serve.Program{Program: new(cli.Program), Graphs: graphs, Providers: []provider.Provider{press}})
}

func startProgram(t *testing.T, c *config.Config, p *serve.Program) (*serve.Server, *syncBuffer) {
	t.Helper()
	logged := new(syncBuffer)
	r, err := serve.Start(t.Context(), p, c, slog.New(slog.NewTextHandler(logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r, logged
}

// makeCertificate writes a certificate for 127.0.0.1 and its key, valid for a name.
func makeCertificate(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{keyFile: {Type: "PRIVATE KEY", Bytes: private}, certFile: {Type: "CERTIFICATE", Bytes: cert}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// A renewed certificate is used for the next connection, without a restart.
func TestServe_TLSCertificateIsReloaded(t *testing.T) {
	dir := t.TempDir()
	cert, key := makeCertificate(t, dir, "first")
	r, logged := startOf(t, settingsOf(t, "FERMATA_LISTEN_TLS_CERT_FILE="+cert, "FERMATA_LISTEN_TLS_KEY_FILE="+key))
	if !strings.HasPrefix(r.URL, "https://") {
		t.Fatal(r.URL)
	}
	name := func() string {
		t.Helper()
		conn, err := tls.Dial("tcp", r.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := name(); got != "first" {
		t.Errorf("the certificate is that of %s", got)
	}
	makeCertificate(t, dir, "second")
	if err := os.Chtimes(cert, time.Time{}, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := name(); got != "second" {
		t.Errorf("after the renewal, the certificate is that of %s", got)
	}
	if err := os.WriteFile(cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A failed renewal used to go unnoticed until the old certificate had expired.
	for range 2 {
		if got := name(); got != "second" {
			t.Errorf("while it is being written, the certificate is that of %s", got)
		}
	}
	if log := logged.String(); strings.Count(log, "new certificate cannot be loaded") != 1 {
		t.Errorf("it is not logged once: %s", log)
	}
	makeCertificate(t, dir, "third")
	if got := name(); got != "third" || !strings.Contains(logged.String(), "certificate loaded again") {
		t.Errorf("after the fix, the certificate is that of %s: %s", got, logged.String())
	}
}

// Connection errors of net/http are in our log, in its format; they used to go to standard error.
func TestServe_ConnectionErrorsAreLogged(t *testing.T) {
	cert, key := makeCertificate(t, t.TempDir(), "here")
	r, logged := startOf(t, settingsOf(t, "FERMATA_LISTEN_TLS_CERT_FILE="+cert, "FERMATA_LISTEN_TLS_KEY_FILE="+key))
	if answer, err := http.Get("http://" + r.Addr().String()); err == nil {
		answer.Body.Close()
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(logged.String(), "TLS handshake error"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log is\n%s", logged.String())
		}
	}
}

// Any client can open a connection and send nothing, as port checks do. That is not one line each.
func TestServe_AnonymousClientsCannotFloodTheLog(t *testing.T) {
	cert, key := makeCertificate(t, t.TempDir(), "here")
	r, logged := startOf(t, settingsOf(t, "FERMATA_LISTEN_TLS_CERT_FILE="+cert, "FERMATA_LISTEN_TLS_KEY_FILE="+key))
	const visits = 100
	for range visits {
		if answer, err := http.Get("http://" + r.Addr().String()); err == nil {
			answer.Body.Close()
		}
	}
	if lines := strings.Count(logged.String(), "TLS handshake error"); lines == 0 || lines > visits/2 {
		t.Errorf("%d connections are %d lines", visits, lines)
	}
}

// Silent anonymous connections are limited, and requests are served.
func TestServe_IdleConnectionsAreLimited(t *testing.T) {
	r, logged := startOf(t, settingsOf(t, "FERMATA_LIMITS_IDLE_CONNS=2"))
	var conns []net.Conn
	for range 5 {
		conn, err := net.Dial("tcp", r.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	for _, conn := range conns[:3] {
		if text, err := io.ReadAll(conn); err != nil || len(text) > 0 {
			t.Errorf("%q, %v", text, err)
		}
	}
	answer, err := http.Get(r.URL + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != 200 || !strings.Contains(logged.String(), "idle connection evicted") {
		t.Errorf("%d, and the log is\n%s", answer.StatusCode, logged.String())
	}
}

func TestServe_InvalidCertificateFailsAtStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := serve.Start(t.Context(), &serve.Program{Program: new(cli.Program)}, settingsOf(t, "FERMATA_LISTEN_TLS_CERT_FILE="+file, "FERMATA_LISTEN_TLS_KEY_FILE="+file), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "listen.tls") {
		t.Errorf("%v", err)
	}
}

// Two servers on one machine: the default metrics address is in use. Because it was not configured,
// the second server starts anyway; a configured one must not be missing.
func TestServe_DefaultMetricsPortInUseIsNotFatal(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	unasked, err := config.Load(config.Source{Environ: []string{"FERMATA_STORE_URL=sqlite:" + filepath.Join(t.TempDir(), "f.db"), "FERMATA_LISTEN_ADDR=127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	unasked.Metrics.Addr = taken.Addr().String() // as if it were the default
	r, logged := startOf(t, unasked)
	if r.MetricsURL != "" || !strings.Contains(logged.String(), "metrics.addr") {
		t.Errorf("%q, %s", r.MetricsURL, logged.String())
	}
	_, err = serve.Start(t.Context(), &serve.Program{Program: new(cli.Program)}, settingsOf(t, "FERMATA_METRICS_ADDR="+taken.Addr().String()), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "metrics.addr") {
		t.Errorf("%v", err)
	}
}

// getPage gets a page like a browser, following redirects.
func getPage(t *testing.T, browser *http.Client, url string) (status int, at, body string) {
	t.Helper()
	response, err := browser.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Request.URL.String(), string(data)
}

func newBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

// The link that the demo prints signs a browser in.
func TestDemo_LinkSignsIn(t *testing.T) {
	graphs, err := sample.Graphs()
	if err != nil {
		t.Fatal(err)
	}
	r, _ := startOf(t, settingsOf(t), graphs...)
	ready, err := new(demo.Command).Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	ready.Announce(&serve.Program{Program: &cli.Program{Out: &out}}, "data")
	link := regexp.MustCompile(`http://\S+/s/\S+`).FindString(out.String())
	browser := newBrowser(t)
	getPage(t, browser, link)
	if status, _, body := getPage(t, browser, r.URL+"/api/v1/me"); status != http.StatusOK || !strings.Contains(body, `"account":"demo"`) {
		t.Errorf("%s leads to %d %s", link, status, body)
	}
}

// People sign in at the configured identity provider, and have the roles of their groups.
func TestServe_PeopleSignInWithOIDC(t *testing.T) {
	const redirect = "http://127.0.0.1:18471/signin/callback"
	idp := oidctest.New(t, oidctest.Client{ID: "fermata", Secret: "hush", RedirectURL: redirect})
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, _ := startOf(t, settingsOf(t, "FERMATA_AUTH_OIDC_ISSUER="+idp.URL, "FERMATA_AUTH_OIDC_CLIENT_ID=fermata", "FERMATA_AUTH_OIDC_CLIENT_SECRET_FILE="+secret,
		"FERMATA_AUTH_OIDC_REDIRECT_URL="+redirect, "FERMATA_AUTH_OIDC_ROLES={reviewers: approver}", "FERMATA_AUTH_OIDC_ACCOUNT=acme", "FERMATA_AUTH_OIDC_ACR={gold: hardware}"))
	idp.SignIn(oidctest.Claims{"sub": "ann", "groups": []string{"reviewers"}, "acr": "gold"})
	browser := newBrowser(t)
	browser.Transport = &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "127.0.0.1:18471" { // the proxy in front of the server
			addr = r.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	getPage(t, browser, "http://127.0.0.1:18471/signin")
	status, _, body := getPage(t, browser, "http://127.0.0.1:18471/api/v1/me")
	if status != http.StatusOK || !strings.Contains(body, `"principal":"ann"`) || !strings.Contains(body, `"roles":["approver"]`) || !strings.Contains(body, `"account":"acme"`) || !strings.Contains(body, `"strength":"hardware"`) {
		t.Errorf("%d %s", status, body)
	}
}

// PostgreSQL as in a cluster: the URL in a file, the schema migrated separately.
func TestServe_OnPostgreSQL(t *testing.T) {
	dir := t.TempDir()
	url := filepath.Join(dir, "url")
	if err := os.WriteFile(url, []byte(pgtest.New(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "key")
	t.Setenv("FERMATA_STORE_URL_FILE", url)
	t.Setenv("FERMATA_KEY_FILE", key)
	t.Setenv("FERMATA_STORE_MIGRATE", "false")
	t.Setenv("FERMATA_LISTEN_ADDR", "127.0.0.1:0")
	t.Setenv("FERMATA_METRICS_ADDR", "off")
	if code, _, errOut := call(t, "key", "make", key); code != cli.ExitOK {
		t.Fatal(errOut)
	}
	if code, out, errOut := call(t, "migrate", "--dry-run"); code != cli.ExitFindings || !strings.Contains(out, "was at version 0") {
		t.Fatalf("%d %s %s", code, out, errOut)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Minute) // if it serves, not forever
	defer cancel()
	var errs syncBuffer
	if code := run(short, []string{"serve"}, io.Discard, &errs); code != cli.ExitError || !strings.Contains(errs.String(), "fermata migrate") {
		t.Fatalf("it served without its schema: %d %s", code, errs.String())
	}
	if code, out, errOut := call(t, "migrate"); code != cli.ExitOK || !strings.Contains(out, "applied") {
		t.Fatalf("%d %s %s", code, out, errOut)
	}
	c, err := config.Load(config.Source{Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := startOf(t, c, signGraph(t))
	startMemo(t, r.Executor, "acme")
	if code, out, errOut := callWithGraphs(t, []inproc.Graph{signGraph(t)}, "check"); code != cli.ExitOK || !strings.Contains(out, "all 1 open runs") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	if code, out, errOut := call(t, "keys", "create", "acme", "bot", "agent"); code != cli.ExitOK || !strings.HasPrefix(out, "fermata_") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
}

// A program may have its own providers.
func TestProvider_OptionAddsAProvider(t *testing.T) {
	press, err := sample.Press()
	if err != nil {
		t.Fatal(err)
	}
	p := serve.Program{Program: new(cli.Program)}
	Provider(press)(&p)
	providers, err := p.OpenProviders(new(config.Config))
	if err != nil || !slices.Contains(providers, press) {
		t.Errorf("%v %v", providers, err)
	}
}

// callWithGraphs runs a program that has graphs.
func callWithGraphs(t *testing.T, graphs []inproc.Graph, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &o, &e, Graphs(graphs...))
	return code, o.String(), e.String()
}

// renamedNode is the program of signGraph after its node was renamed.
func renamedNode(t *testing.T) inproc.Graph {
	t.Helper()
	g := graph.New[memo]("memo")
	g.Node("signature", func(ctx context.Context, m memo) (memo, error) {
		_, err := sign.Ask(ctx, m.Text)
		return m, err
	})
	g.Edge(graph.Start, "signature")
	g.Edge("signature", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Flow(flow, inproc.FlowConfig[memo]{})
}

// Before a deploy: the new program lists the runs it could not resume, and the old one resumes all
// of them.
func TestCheck_BeforeADeploy(t *testing.T) {
	url, e := openServer(t)
	startMemo(t, e, "acme")
	if code, out, errOut := callWithGraphs(t, []inproc.Graph{signGraph(t)}, "check", "--store", url); code != cli.ExitOK || !strings.Contains(out, "all 1 open runs") {
		t.Errorf("the same program: %d %s %s", code, out, errOut)
	}
	code, out, errOut := callWithGraphs(t, []inproc.Graph{renamedNode(t)}, "check", "--store", url, "--json")
	var row operatorcmd.CheckRow
	if err := json.Unmarshal([]byte(out), &row); err != nil || code != cli.ExitFindings || row.StateKey != "memo-1" || row.Account != "acme" || !strings.Contains(row.Reason, "node:sign") {
		t.Errorf("a renamed node: %d %s %s", code, out, errOut)
	}
	if code, out, _ := call(t, "check", "--store", url); code != cli.ExitFindings || !strings.Contains(out, `no graph "inproc:memo"`) {
		t.Errorf("no graph: %d %s", code, out)
	}
	outcome, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "memo-1", ResumeID: "1", Actor: "ann", Value: json.RawMessage(`"ann"`)})
	if _, done := outcome.(fermata.Completed); err != nil || !done {
		t.Errorf("the old program resumes with %#v, %v", outcome, err)
	}
}
