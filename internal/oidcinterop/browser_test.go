package oidcinterop

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// browser is a user's browser with its cookies.
type browser struct {
	*testing.T
	client *http.Client
	hop    func(*url.URL) // sees every redirect and may change it
	forms  []string       // the forms filled in at the provider: login, consent
}

// page is the current page of a browser.
type page struct {
	status int
	url    *url.URL
	header http.Header
	body   string
}

func (s *site) browser(t *testing.T) *browser {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if "http://"+addr == home { // the public address of the server
			addr = s.addr
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	b := &browser{T: t, client: &http.Client{Transport: transport, CheckRedirect: stay}}
	return b.newBrowser()
}

// newBrowser returns the browser of another user.
func (b *browser) newBrowser() *browser {
	b.Helper()
	client := *b.client
	var err error
	if client.Jar, err = cookiejar.New(nil); err != nil {
		b.Fatal(err)
	}
	return &browser{T: b.T, client: &client, hop: func(*url.URL) {}}
}

func (b *browser) url(text string) *url.URL {
	b.Helper()
	u, err := url.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	return u
}

// cookies returns the cookies for the server.
func (b *browser) cookies() []*http.Cookie { return b.client.Jar.Cookies(b.url(home)) }

// steal sets cookies in this browser.
func (b *browser) steal(cookies []*http.Cookie) { b.client.Jar.SetCookies(b.url(home), cookies) }

// send sends one request.
func (b *browser) send(method, at string, form url.Values, header ...string) page {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, at, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := b.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return page{response.StatusCode, r.URL, response.Header, string(body)}
}

// follow follows redirects until there is a page.
func (b *browser) follow(p page) page {
	b.Helper()
	for range 20 {
		to := p.header.Get("Location")
		if p.status/100 != 3 || to == "" {
			return p
		}
		next, err := p.url.Parse(to)
		if err != nil {
			b.Fatal(err)
		}
		b.hop(next)
		p = b.send("GET", next.String(), nil)
	}
	b.Fatal("redirect loop")
	return page{}
}

func (b *browser) open(at string) page {
	b.Helper()
	return b.follow(b.send("GET", at, nil))
}

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)" method="post">`)
	formPrompt = regexp.MustCompile(`name="prompt" value="(\w+)"`)
)

// fill submits the forms of the provider like a user, until there is a page without a form.
func (b *browser) fill(p page, name string) page {
	b.Helper()
	for {
		action, prompt := formAction.FindStringSubmatch(p.body), formPrompt.FindStringSubmatch(p.body)
		if p.status != http.StatusOK || action == nil || prompt == nil {
			return p
		}
		b.forms = append(b.forms, prompt[1])
		form := url.Values{"prompt": {prompt[1]}}
		if prompt[1] == "login" {
			form.Set("login", name)
			form.Set("password", "any")
		}
		p = b.follow(b.send("POST", html.UnescapeString(action[1]), form))
	}
}

// where is the page that users return to in these tests. It needs no graph and no request.
const where = home + "/api/v1/me"

// signIn goes through the whole sign-in and returns the final page.
func (b *browser) signIn(name string) page {
	b.Helper()
	return b.fill(b.open(home+"/signin?return=/api/v1/me"), name)
}

// me is the identity that the API reports.
type me struct {
	Status                           int `json:"-"`
	Principal, Name, Account, Method string
	Roles                            []string
}

func (m me) equal(other me) bool { return reflect.DeepEqual(m, other) }

// me asks the API, with the session or with a token.
func (b *browser) me(token string) me {
	b.Helper()
	header := []string{"Accept", "application/json"}
	if token != "" {
		header = append(header, "Authorization", "Bearer "+token)
	}
	p := b.send("GET", where, nil, header...)
	who := me{Status: p.status}
	if p.status == http.StatusOK {
		if err := json.Unmarshal([]byte(p.body), &who); err != nil {
			b.Fatal(err)
		}
	}
	return who
}
