package channeltest_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"golang.org/x/net/html"

	"github.com/fermata-go/fermata/channel/channeltest"
	"github.com/fermata-go/fermata/channel/email"
	"github.com/fermata-go/fermata/internal/adversarialtext"
)

// mailServer is an SMTP server with TLS. It keeps messages by their Message-ID, as a mailbox that
// suppresses duplicates.
type mailServer struct {
	mu     sync.Mutex
	fail   channeltest.Failure
	ids    []string
	copies []channeltest.Copy
	tb     testing.TB
}

func (s *mailServer) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &mailSession{server: s, conn: c}, nil
}

type mailSession struct {
	server *mailServer
	conn   *smtp.Conn
}

func (*mailSession) Mail(string, *smtp.MailOptions) error { return nil }

func (m *mailSession) Rcpt(string, *smtp.RcptOptions) error {
	s := m.server
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := s.fail.Kind
	switch kind {
	case channeltest.Temporary:
		s.fail = channeltest.Failure{}
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "later"}
	case channeltest.Permanent:
		s.fail = channeltest.Failure{}
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	return nil
}

func (m *mailSession) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s := m.server
	s.mu.Lock()
	defer s.mu.Unlock()
	id, c, err := mailCopy(data)
	if err != nil {
		s.tb.Errorf("%v: %.2000s", err, data)
		return err
	}
	if !slices.Contains(s.ids, id) {
		s.ids, s.copies = append(s.ids, id), append(s.copies, c)
	}
	if s.fail.Kind == channeltest.LoseResponse {
		s.fail = channeltest.Failure{}
		return m.conn.Conn().Close()
	}
	return nil
}

func (*mailSession) Reset()        {}
func (*mailSession) Logout() error { return nil }

// mailCopy reads a message: its subject and both parts.
func mailCopy(data []byte) (id string, c channeltest.Copy, err error) {
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return "", c, err
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		return "", c, err
	}
	c.Text = subject + "\n"
	_, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return "", c, err
	}
	parts := multipart.NewReader(m.Body, parameters["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", c, err
		}
		text, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			return "", c, err
		}
		c.Text += string(text)
	}
	if len(m.Header["To"]) != 1 || len(m.Header["Bcc"])+len(m.Header["Cc"]) > 0 || m.Header.Get("Message-Id") == "" {
		return "", c, fmt.Errorf("header %v", m.Header)
	}
	if strings.Contains(c.Text, decisionPage) {
		c.Actions = []string{"Review and decide"}
	}
	c.Ended = strings.Contains(c.Text, "This request is closed\n") || strings.Contains(c.Text, "This request is closed\r\n")
	return m.Header.Get("Message-Id"), c, nil
}

const decisionPage = "https://fermata.example/channels/email/"

func openEmail(t testing.TB) channeltest.Subject {
	certificate, roots := newCertificate(t)
	s := &mailServer{tb: t}
	server := smtp.NewServer(s)
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.ErrorLog = discard{}
	listener, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	c, err := email.New(email.Config{
		Host: loopback, Port: listener.Addr().(*net.TCPAddr).Port, From: "Fermata <fermata@example.com>", BaseURL: "https://fermata.example", Key: bytes.Repeat([]byte("k"), 32), Roots: roots,
	})
	if err != nil {
		t.Fatal(err)
	}
	copies := func() []channeltest.Copy {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Clone(s.copies)
	}
	fail := func(f channeltest.Failure) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fail = f
	}
	return channeltest.Subject{
		Channel: c, To: "ann@example.com", Unknown: "nobody", Copies: copies, Fail: fail, Harmless: harmlessMail, NoReplace: true, NoUpdates: true, NoRetryAfter: true,
	}
}

// discard drops the log of the mail server: lost connections are part of the tests.
type discard struct{}

func (discard) Printf(string, ...any) {}
func (discard) Println(...any)        {}

// mailTags are the elements of the template.
var mailTags = []string{"html", "head", "meta", "title", "body", "div", "p", "h1", "strong", "table", "tr", "td", "s", "br", "blockquote", "a"}

// pageLink is the beginning of a line that links to the page for decisions.
var pageLink = regexp.MustCompile(`(?m)^Review and decide:\r?$`)

// harmlessMail checks that a forged payload adds no element, link or heading to a message.
func harmlessMail(t testing.TB, p adversarialtext.Payload, c, plain channeltest.Copy) {
	if n := len(pageLink.FindAllString(c.Text, -1)); n != 1 {
		t.Errorf("%s: %d headings of the link to decide", p.Name, n)
	}
	if p.Flag && !strings.Contains(c.Text, "unusual characters") {
		t.Errorf("%s: not flagged", p.Name)
	}
	links, forms := mailLinks(t, c.Text)
	want, _ := mailLinks(t, plain.Text)
	if len(links) != len(want) || len(forms) > 0 {
		t.Errorf("%s: links %q and elements %q; want %d links", p.Name, links, forms, len(want))
	}
	for _, link := range links {
		if !strings.HasPrefix(link, "https://fermata.example/") {
			t.Errorf("%s: link %q", p.Name, link)
		}
	}
}

// mailLinks returns the links in the HTML part, and the elements and attributes that the template
// does not have.
func mailLinks(t testing.TB, text string) (links, others []string) {
	t.Helper()
	_, page, ok := strings.Cut(text, "<!doctype html>")
	if !ok {
		t.Fatalf("no HTML part: %.2000s", text)
	}
	tokens := html.NewTokenizer(strings.NewReader(page))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return links, others
		case html.StartTagToken, html.SelfClosingTagToken:
			token := tokens.Token()
			if !slices.Contains(mailTags, token.Data) {
				others = append(others, token.Data)
			}
			for _, a := range token.Attr {
				switch a.Key {
				case "href":
					links = append(links, a.Val)
				case "style", "lang", "charset", "name", "content", "role":
				default:
					others = append(others, a.Key)
				}
			}
		}
	}
}

func newCertificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
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
