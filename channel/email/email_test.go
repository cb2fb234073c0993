package email_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/email"
	"github.com/fermata-go/fermata/internal/desk"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// mailServer is a real SMTP server on loopback, with TLS and authentication.
type mailServer struct {
	host  string
	port  int
	roots *x509.CertPool

	mu       sync.Mutex
	messages []string
	refuse   *smtp.SMTPError
}

func newMailServer(t *testing.T, implicit bool) *mailServer {
	t.Helper()
	certificate, roots := certificateFor(t)
	s := &mailServer{host: "127.0.0.1", roots: roots}
	server := smtp.NewServer(s)
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = listener.Addr().(*net.TCPAddr).Port
	if implicit {
		listener = tls.NewListener(listener, server.TLSConfig)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

func certificateFor(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func (s *mailServer) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }

type session struct {
	server *mailServer
	signed bool
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if username != "fermata" || password != "secret" {
			return smtp.ErrAuthFailed
		}
		s.signed = true
		return nil
	}), nil
}

func (s *session) Mail(string, *smtp.MailOptions) error {
	if !s.signed {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *session) Rcpt(string, *smtp.RcptOptions) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.refuse != nil {
		return s.server.refuse
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.messages = append(s.server.messages, string(data))
	return err
}

func (*session) Reset()        {}
func (*session) Logout() error { return nil }

// parts returns the header and the decoded parts of a message by type.
func parts(t *testing.T, message string) (mail.Header, map[string]string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	kind, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("%s: %v", kind, err)
	}
	all := make(map[string]string)
	reader := multipart.NewReader(m.Body, parameters["boundary"])
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return m.Header, all
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		text, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		all[kind] = string(text)
	}
}

func newChannel(t *testing.T, s *mailServer, change func(*email.Config)) *email.Channel {
	t.Helper()
	config := email.Config{
		Host: s.host, Port: s.port, Username: "fermata", Password: "secret", From: "Fermata <fermata@example.com>", BaseURL: "https://fermata.example",
		Key: bytes.Repeat([]byte("k"), 32), Roots: s.roots, Now: func() time.Time { return noon },
	}
	if change != nil {
		change(&config)
	}
	c, err := email.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func refund() channel.Message {
	return channel.Message{Account: "acme", Delivery: "d1", Attempt: 1, Kind: desk.NoticeNotify, To: "ann@example.com", Card: channel.Card{
		Request: "int_1", Digest: "shown-1", Kind: "approval", Action: "refund",
		Presentation: api.Presentation{
			Title: "refund: amount 120.00", Sentence: "support-bot wants to run refund: amount 120.00",
			Facts:    []api.Fact{{Label: "amount", Value: "120.00"}, {Label: "note", Value: "U+202Ex", Flagged: true}},
			Evidence: []api.Evidence{{Title: "Order", Source: "shop", Text: "17: 1 cup", Was: "17: 2 cups"}},
			Actions:  []api.Action{{Name: "approve", Label: "Approve", Answer: json.RawMessage(`{"verb":"approve"}`)}, {Name: "reject", Label: "Reject…"}},
			Said:     []api.Quote{{By: "shop", Text: "<b>Approve</b> here: https://evil.example\nReview and decide:\nhttps://evil.example"}},
		},
		Rules: []string{"large"}, Risk: 1, State: desk.StateOpen,
		Deadline: noon.Add(24 * time.Hour), Link: "https://fermata.example/requests/int_1", At: noon,
	}}
}

// A value of several lines cannot look like a part of the message.
func TestSend_FurtherLinesOfValuesAreMarked(t *testing.T) {
	const forged = "thanks\n\nDecide here:\nhttps://evil.example/channels/email/abc\n  to: bob\r\nVotes: 2 of 2"
	s := newMailServer(t, false)
	m := refund()
	m.Card.Facts = append([]api.Fact{{Label: "note", Value: forged}, {Label: "to", Value: "ann"}}, api.Fact{Label: "was", Value: "new", Was: forged})
	if _, err := newChannel(t, s, nil).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	_, all := parts(t, s.messages[0])
	lines := strings.Split(strings.ReplaceAll(all["text/plain"], "\r\n", "\n"), "\n")
	marked := 0
	for _, line := range lines {
		if strings.HasPrefix(line, "    | ") {
			marked++
		} else if strings.Contains(line, "Decide here") || strings.Contains(line, "evil.example/channels") || strings.Contains(line, "2 of 2") || strings.Contains(line, "to: bob") {
			t.Errorf("not marked: %q", line)
		}
	}
	if marked != 10 { // five further lines of each value
		t.Errorf("%d lines are marked:\n%s", marked, strings.Join(lines, "\n"))
	}
}

func TestSend_SameFactsInTextAndHTML(t *testing.T) {
	for _, security := range []email.Security{email.StartTLS, email.ImplicitTLS} {
		s := newMailServer(t, security == email.ImplicitTLS)
		c := newChannel(t, s, func(config *email.Config) { config.Security = security })
		if _, err := c.Send(t.Context(), refund()); err != nil {
			t.Fatal(security, err)
		}
		header, all := parts(t, s.messages[0])
		if header.Get("Subject") != "Decision needed: refund: amount 120.00" || !strings.Contains(header.Get("To"), "ann@example.com") || header.Get("Auto-Submitted") != "auto-generated" || header.Get("Message-ID") == "" {
			t.Errorf("header %v", header)
		}
		for kind, text := range all {
			for _, want := range []string{"120.00", "unusual characters", "large", "https://fermata.example/channels/email/", "https://fermata.example/requests/int_1", "Opening a link decides nothing", "17: 1 cup", "17: 2 cups", "shop wrote, not verified", "Possible answers: Approve · Reject…", "Risk: low"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s has no %q:\n%s", kind, want, text)
				}
			}
		}
		if len(all) != 2 || strings.Contains(all["text/html"], "<b>") || !strings.Contains(all["text/plain"], "\n  | Review and decide:\r\n") && !strings.Contains(all["text/plain"], "\n  | Review and decide:\n") {
			t.Errorf("text of the agent is not set apart:\n%s", all)
		}
	}
}

func TestSend_OutcomeInTheSameThread(t *testing.T) {
	s := newMailServer(t, false)
	c := newChannel(t, s, nil)
	m := refund()
	var err error
	if m.Ref, err = c.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m.Kind = desk.NoticeRerender
	if m.Ref, err = c.Send(t.Context(), m); err != nil || len(s.messages) != 1 {
		t.Fatalf("after a vote there are %d messages: %v", len(s.messages), err)
	}
	m.Card.State, m.Card.Outcome, m.Card.DecidedAt = desk.StateDecided, "approved by bob", noon
	for range 2 {
		if m.Ref, err = c.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.messages) != 2 {
		t.Fatalf("%d messages", len(s.messages))
	}
	first, _ := parts(t, s.messages[0])
	second, text := parts(t, s.messages[1])
	if second.Get("In-Reply-To") != first.Get("Message-ID") || !strings.Contains(text["text/plain"], "approved by bob") || strings.Contains(text["text/plain"], "/channels/email/") {
		t.Errorf("%v\n%s", second, text["text/plain"])
	}
}

func TestSend_Errors(t *testing.T) {
	s := newMailServer(t, false)
	send := func(m channel.Message, change func(*email.Config)) *channel.Error {
		_, err := newChannel(t, s, change).Send(t.Context(), m)
		failed, _ := errors.AsType[*channel.Error](err)
		return failed
	}
	s.refuse = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	if err := send(refund(), nil); err == nil || err.Code != "smtp_550" || !err.Permanent {
		t.Errorf("an unknown recipient: %v", err)
	}
	s.refuse = &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "later"}
	if err := send(refund(), nil); err == nil || err.Code != "smtp_451" || err.Permanent {
		t.Errorf("a busy server: %v", err)
	}
	s.refuse = nil
	if err := send(refund(), func(c *email.Config) { c.Roots = x509.NewCertPool() }); err == nil || err.Permanent {
		t.Errorf("a server with an unknown certificate: %v", err)
	}
	if err := send(refund(), func(c *email.Config) { c.Password = "wrong" }); err == nil {
		t.Error("a wrong password is accepted")
	}
	bad := refund()
	bad.To = "not an address\r\nBcc: eve@example.com"
	if err := send(bad, nil); err == nil || !err.Permanent {
		t.Errorf("an address with a line break: %v", err)
	}
	inject := refund()
	inject.Card.Title = "refund\r\nBcc: eve@example.com"
	if err := send(inject, nil); err != nil {
		t.Fatal(err)
	}
	if header, _ := parts(t, s.messages[0]); header.Get("Bcc") != "" {
		t.Error("a title adds a header")
	}
	if len(s.messages) != 1 {
		t.Errorf("%d messages", len(s.messages))
	}
	for _, config := range []email.Config{{}, {Host: "h", From: "x"}, {Host: "h", From: "a@b.c", BaseURL: "x"}, {Host: "h", From: "a@b.c", BaseURL: "https://a.b"}, {Host: "h", From: "a@b.c", BaseURL: "https://a.b", Key: make([]byte, 32), Security: "none"}} {
		if _, err := email.New(config); err == nil {
			t.Errorf("%+v is accepted", config)
		}
	}
}
