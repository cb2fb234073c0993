// Package pushfake is a push service for tests, with its browsers. It rejects what a push service
// rejects, and decrypts messages as a browser does.
//
//	service := pushfake.New()
//	server := httptest.NewServer(service)
//	browser := service.Subscribe(server.URL, publicKey)
//	… // send to browser.Endpoint
//	messages := service.Messages(browser)
package pushfake

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Browser is a subscription, as PushSubscription.toJSON returns it.
type Browser struct{ Endpoint, P256DH, Auth string }

// Message is a message that a browser received.
type Message struct {
	Browser        Browser
	Topic, Urgency string
	TTL            time.Duration
	// Data is the decrypted message.
	Data []byte
}

// Service is a push service. It is an http.Handler.
type Service struct {
	mu       sync.Mutex
	browsers map[string]*subscription // by path
	messages []Message
	failure  func(http.ResponseWriter)
	lose     bool
	errs     []error
}

type subscription struct {
	Browser
	private *ecdh.PrivateKey
	auth    []byte
	server  string // the key that it is bound to
	ended   bool
}

// New returns a push service without browsers.
func New() *Service { return &Service{browsers: make(map[string]*subscription)} }

// Subscribe adds a browser. base is the URL of the service, server the VAPID key of the server that
// may send to the browser.
func (s *Service) Subscribe(base, server string) Browser {
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	b := &subscription{private: private, auth: make([]byte, 16), server: server}
	rand.Read(b.auth)
	path := "/push/" + rand.Text()
	b.Browser = Browser{Endpoint: base + path, P256DH: encode(private.PublicKey().Bytes()), Auth: encode(b.auth)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers[path] = b
	return b.Browser
}

// End ends a subscription, as a browser does when its user blocks notifications.
func (s *Service) End(b Browser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.browsers {
		known.ended = known.ended || known.Browser == b
	}
}

// Messages returns what a browser has received, oldest first; for the zero value, all browsers.
func (s *Service) Messages(b Browser) (all []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if b == (Browser{}) || m.Browser == b {
			all = append(all, m)
		}
	}
	return all
}

// Fail makes the next message fail with a status. retryAfter is the header, "" for none.
func (s *Service) Fail(status int, retryAfter string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = func(w http.ResponseWriter) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
	}
}

// LoseResponse accepts the next message and closes the connection without a response.
func (s *Service) LoseResponse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = true
}

// Err returns what was wrong with rejected messages.
func (s *Service) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

const maxBody = 4096

// ServeHTTP accepts a message.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return // the sender went away
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.browsers[r.URL.Path]
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		return
	case b.ended:
		w.WriteHeader(http.StatusGone)
		return
	}
	reject := func(status int, err error) {
		s.errs = append(s.errs, err)
		http.Error(w, err.Error(), status)
	}
	m, err := checkHeader(r)
	if err != nil {
		reject(http.StatusBadRequest, err)
		return
	}
	if err := checkAuthorization(r, b); err != nil {
		reject(http.StatusForbidden, err)
		return
	}
	if len(body) > maxBody {
		reject(http.StatusRequestEntityTooLarge, errors.New("the message has more than 4096 bytes"))
		return
	}
	if fail := s.failure; fail != nil {
		s.failure = nil
		fail(w)
		return
	}
	m.Browser = b.Browser
	if m.Data, err = decrypt(b, body); err != nil { // a push service cannot see it, the browser drops it
		reject(http.StatusBadRequest, err)
		return
	}
	s.messages = append(s.messages, m)
	if s.lose {
		s.lose = false
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Location", "/message/"+strconv.Itoa(len(s.messages)))
	w.WriteHeader(http.StatusCreated)
}

var topicForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// checkHeader checks the header fields of RFC 8030.
func checkHeader(r *http.Request) (m Message, err error) {
	seconds, badTTL := strconv.ParseUint(r.Header.Get("TTL"), 10, 31)
	m = Message{Topic: r.Header.Get("Topic"), Urgency: r.Header.Get("Urgency"), TTL: time.Duration(seconds) * time.Second}
	switch {
	case r.Method != http.MethodPost:
		err = fmt.Errorf("method %s", r.Method)
	case badTTL != nil:
		err = fmt.Errorf("TTL %q", r.Header.Get("TTL"))
	case r.Header.Get("Content-Encoding") != "aes128gcm":
		err = fmt.Errorf("content encoding %q", r.Header.Get("Content-Encoding"))
	case m.Topic != "" && !topicForm.MatchString(m.Topic):
		err = fmt.Errorf("topic %q", m.Topic)
	case m.Urgency != "" && !slices.Contains([]string{"very-low", "low", "normal", "high"}, m.Urgency):
		err = fmt.Errorf("urgency %q", m.Urgency)
	}
	return m, err
}

var authorizationForm = regexp.MustCompile(`^vapid t=([A-Za-z0-9_.-]+), ?k=([A-Za-z0-9_-]+)$`)

// maxToken is how long a token may be valid: RFC 8292.
const maxToken = 24 * time.Hour

// checkAuthorization verifies the token of RFC 8292.
func checkAuthorization(r *http.Request, b *subscription) error {
	parts := authorizationForm.FindStringSubmatch(r.Header.Get("Authorization"))
	if parts == nil {
		return errors.New("no VAPID authorization")
	}
	if parts[2] != b.server {
		return errors.New("the subscription is bound to another key")
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw)
	if err != nil {
		return err
	}
	endpoint, err := url.Parse(b.Endpoint)
	if err != nil {
		return err
	}
	token, err := jwt.Parse(parts[1], func(*jwt.Token) (any, error) { return key, nil },
		jwt.WithValidMethods([]string{"ES256"}), jwt.WithAudience(endpoint.Scheme+"://"+endpoint.Host), jwt.WithExpirationRequired())
	if err != nil {
		return err
	}
	expires, err := token.Claims.GetExpirationTime()
	if err != nil || time.Until(expires.Time) > maxToken {
		return fmt.Errorf("the token ends at %v: %w", expires, err)
	}
	subject, err := token.Claims.GetSubject()
	if err != nil || !strings.HasPrefix(subject, "mailto:") && !strings.HasPrefix(subject, "https:") {
		return fmt.Errorf("subject %q: %w", subject, err)
	}
	return nil
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
