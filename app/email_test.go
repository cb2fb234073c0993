package app

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/mail"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider/inproc"
)

// mailServer is an SMTP server on loopback with TLS, which requires a password.
type mailServer struct {
	addr, certFile string

	mu       sync.Mutex
	messages []string
}

func startMail(t *testing.T) *mailServer {
	t.Helper()
	certFile, keyFile := makeCertificate(t, t.TempDir(), "mail")
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	s := &mailServer{certFile: certFile}
	server := smtp.NewServer(s)
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = listener.Addr().String()
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

func (s *mailServer) NewSession(*smtp.Conn) (smtp.Session, error) {
	return &mailSession{server: s}, nil
}

type mailSession struct {
	server *mailServer
	signed bool
}

func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }
func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if s.signed = username == "fermata" && password == "hush"; !s.signed {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (s *mailSession) Mail(string, *smtp.MailOptions) error {
	if !s.signed {
		return smtp.ErrAuthRequired
	}
	return nil
}
func (s *mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (s *mailSession) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.messages = append(s.server.messages, string(data))
	return err
}
func (*mailSession) Reset()        {}
func (*mailSession) Logout() error { return nil }

// received returns the messages so far, decoded.
func (s *mailServer) received(t *testing.T) (texts []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, message := range s.messages {
		m, err := mail.ReadMessage(strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(quotedprintable.NewReader(m.Body)) // headers of the parts stay
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// postForm sends a form of a page as a browser does, and returns where it leads.
func postForm(t *testing.T, browser *http.Client, target string, form url.Values) (status int, path string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, err := browser.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode, answer.Request.URL.Path
}

// From the message to the decision: the address is linked once, the page of the link shows the
// request, and only the form decides. A program that follows links decides nothing.
func TestServe_EmailLinkToDecision(t *testing.T) {
	r, s, browser, page := serveLinkedMail(t, "")
	scanner := newBrowser(t) // it is not signed in
	var status int
	var body string
	for range 3 {
		status, _, body = getPage(t, scanner, page)
	}
	if status != http.StatusOK || !strings.Contains(body, `value="approve"`) || !strings.Contains(body, "120") {
		t.Fatalf("the page of the link: %d\n%s", status, body)
	}
	run := func(status string) bool {
		t.Helper()
		_, _, body := getPage(t, browser, r.URL+"/api/v1/runs/refund-1")
		return strings.Contains(body, `"status":"`+status+`"`)
	}
	if !run("waiting") {
		t.Fatal("opening the link decided the request")
	}
	if status, _ := postForm(t, scanner, page, url.Values{"action": {"approve"}}); status != http.StatusOK {
		t.Fatalf("the form: %d", status)
	}
	eventually(t, "the run completes", func() bool { return run("completed") })
	eventually(t, "a third message tells the outcome", func() bool { return len(s.received(t)) == 3 })
	if text := s.received(t)[2]; !strings.Contains(text, "approved by ann") {
		t.Errorf("the second message is\n%s", text)
	}
}

// A link decides once, also after its decision was undone.
func TestServe_EmailLinkDecidesOnce(t *testing.T) {
	r, _, _, page := serveLinkedMail(t, "version: \"1\"\ndefault: ask\ndefaults: {ask: {groups: [{from: [\"user:ann\"]}], deadline: 12h, undo: 5m}}\n")
	forwarded := newBrowser(t) // it is not signed in
	vote := func(form url.Values) int {
		t.Helper()
		status, _ := postForm(t, forwarded, page, form)
		return status
	}
	open, err := r.ListRequests(t.Context(), "acme", store.InboxFilter{State: store.InterruptPending})
	if err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	pending := func() bool {
		t.Helper()
		request, err := r.GetRequest(t.Context(), "acme", open[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		return request.Request.Pending != nil
	}
	approve := url.Values{"action": {"approve"}}
	for range 2 { // as a person who presses twice
		if status := vote(approve); status != http.StatusOK || !pending() {
			t.Fatalf("the form: %d", status)
		}
	}
	undo := desk.Undo{From: desk.From{Actor: desk.PersonActor("ann", requirement.AuthSSO)}}
	if _, err := r.Act(t.Context(), "acme", open[0].ID, undo); err != nil || pending() {
		t.Fatalf("undo: %v", err)
	}
	for _, form := range []url.Values{approve, {"action": {"approve"}, "form": {"another"}}, {"action": {"reject"}, "v/reason": {"no"}}} {
		if status := vote(form); status != http.StatusConflict || pending() {
			t.Errorf("%v after the decision was undone: %d, pending: %t", form, status, pending())
		}
	}
}

// serveLinkedMail starts a server with a request whose message was sent to an address that is
// linked, with a policy unless that is "". It returns the browser of ann and the page of the link.
func serveLinkedMail(t *testing.T, policy string, graphs ...inproc.Graph) (r *serve.Server, s *mailServer, browser *http.Client, page string) {
	t.Helper()
	const public = "http://fermata.test"
	s = startMail(t)
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"password": "hush", "key": strings.Repeat("k", 64),
		"routes.yaml": "routes:\n- name: default\n  steps: [{at: 0s, notify: [\"email:ann@example.com\"]}, {at: 12h, expire: stale}]\n",
	}
	policyFile := ""
	if policy != "" {
		policyFile, files["policy.yaml"] = "policy.yaml", policy
	}
	writeFiles(t, files)
	r, _ = startOf(t, settingsOf(t, "FERMATA_CHANNELS_EMAIL_HOST="+host, "FERMATA_CHANNELS_EMAIL_PORT="+port, "FERMATA_CHANNELS_EMAIL_CA_FILE="+filepath.ToSlash(s.certFile),
		"FERMATA_CHANNELS_EMAIL_USERNAME=fermata", "FERMATA_CHANNELS_EMAIL_PASSWORD_FILE=password", "FERMATA_CHANNELS_EMAIL_FROM=Fermata <fermata@example.com>", "FERMATA_CHANNELS_EMAIL_LINK_KEY_FILE=key",
		"FERMATA_DESK_ROUTES_FILE=routes.yaml", "FERMATA_DESK_POLICY_FILE="+policyFile, "FERMATA_LISTEN_PUBLIC_URL="+public), graphs...)
	input := json.RawMessage(`{"kind":"approval","data":{"action":"refund","args":{"amount":120}}}`)
	if _, err := r.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "refund-1", Graph: "external:request", Input: input}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message arrives", func() bool { return len(s.received(t)) > 0 })
	page = regexp.MustCompile(public + `/channels/email/[\w.-]+`).FindString(s.received(t)[0])
	if page == "" {
		t.Fatalf("no link in\n%s", s.received(t)[0])
	}
	page = strings.Replace(page, public, r.URL, 1)
	browser = newBrowser(t)
	status, _, body := getPage(t, browser, page)
	if status != http.StatusOK || strings.Contains(body, "/link/") || strings.Contains(body, "120") {
		t.Fatalf("before the address is linked: %d\n%s", status, body)
	}
	if status, _ := postForm(t, browser, page, url.Values{"action": {"link"}}); status != http.StatusOK {
		t.Fatalf("asking for a link: %d", status)
	}
	link := regexp.MustCompile(public + `(/link/\w+)`).FindStringSubmatch(s.received(t)[1])
	if link == nil {
		t.Fatalf("no link in\n%s", s.received(t)[1])
	}
	signIn, err := r.API.DevLink(r.Addr(), authn.Principal{Account: "acme", ID: "ann", Roles: []authn.Role{authn.RoleApprover}}, "/inbox")
	if err != nil {
		t.Fatal(err)
	}
	getPage(t, browser, signIn)
	if _, _, body = getPage(t, browser, r.URL+link[1]); !strings.Contains(body, "E-mail") || !strings.Contains(body, "ann@example.com") {
		t.Fatalf("the page that links the address:\n%s", body)
	}
	if _, at := postForm(t, browser, r.URL+link[1], url.Values{}); at != "/me" {
		t.Fatalf("the address is not linked: %s", at)
	}
	return r, s, browser, page
}

// A browser in which another person is signed in neither sees nor decides what a forwarded link
// leads to.
func TestServe_ForwardedEmailLink(t *testing.T) {
	r, _, _, page := serveLinkedMail(t, "")
	bob := newBrowser(t)
	signIn, err := r.API.DevLink(r.Addr(), authn.Principal{Account: "acme", ID: "bob", Roles: []authn.Role{authn.RoleApprover}}, "/inbox")
	if err != nil {
		t.Fatal(err)
	}
	getPage(t, bob, signIn)
	if status, _, body := getPage(t, bob, page); status != http.StatusForbidden || !strings.Contains(body, "You are signed in as bob") || strings.Contains(body, "120") {
		t.Errorf("%d\n%s", status, body)
	}
	if status, _ := postForm(t, bob, page, url.Values{"action": {"approve"}}); status != http.StatusForbidden {
		t.Errorf("%d", status)
	}
	if open, err := r.ListRequests(t.Context(), "acme", store.InboxFilter{State: store.InterruptPending}); err != nil || len(open) != 1 || len(open[0].Request.Votes) != 0 {
		t.Errorf("%+v %v", open, err)
	}
}
