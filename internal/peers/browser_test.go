//go:build unix

package peers

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
)

// browser is a browser of a person, without scripts.
type browser struct {
	*server
	http *http.Client
}

// signIn invites an approver, and returns their browser after they have chosen a password.
func (s *server) signIn(person string) *browser {
	s.Helper()
	return s.signInAs(person, "approver")
}

func (s *server) signInAs(person, role string) *browser {
	s.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.Fatal(err)
	}
	b := &browser{server: s, http: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	link, err := url.Parse(strings.TrimSpace(s.must("ops", "invite", person, "--role", role)))
	if err != nil {
		s.Fatal(err)
	}
	b.post("/signin/invitation", url.Values{"token": {link.Query().Get("token")}, "password": {"correct horse battery staple"}})
	return b
}

func (b *browser) get(path string) string {
	b.Helper()
	request, err := http.NewRequest(http.MethodGet, b.url+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	return b.do(request, http.StatusOK)
}

// post sends a form, whose response must be a redirect.
func (b *browser) post(path string, form url.Values) string {
	b.Helper()
	request, err := http.NewRequest(http.MethodPost, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", b.url)
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.do(request, http.StatusSeeOther)
}

func (b *browser) do(request *http.Request, want int) string {
	b.Helper()
	request.Header.Set("Accept", "text/html,*/*;q=0.8")
	response, err := b.http.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != want {
		b.Fatalf("%s %s: status %d, %v\n%s", request.Method, request.URL.Path, response.StatusCode, err, body)
	}
	return string(body)
}

var (
	hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)
	radioButton = regexp.MustCompile(`<input type="radio" name="s([^"]+)" value="([^"]*)"[^>]*> <span[^>]*>([^<]*)`)
)

// submit fills in the form of an action of a request, and sends it. Values have the JSON pointers
// of the fields in the answer.
func (b *browser) submit(id, action string, values map[string]string) {
	b.Helper()
	path := "/requests/" + id + "/" + action
	page := b.get(path)
	form := make(url.Values)
	for _, field := range hiddenField.FindAllStringSubmatch(page, -1) {
		form.Set(field[1], html.UnescapeString(field[2]))
	}
	for pointer, value := range values {
		if strings.Contains(page, `name="v`+pointer+`"`) {
			form.Set("v"+pointer, value)
			continue
		}
		for _, button := range radioButton.FindAllStringSubmatch(page, -1) {
			if button[1] == pointer && strings.Trim(html.UnescapeString(button[3]), `"`) == value {
				form.Set("s"+pointer, button[2])
			}
		}
		if !form.Has("s" + pointer) {
			b.Fatalf("the form has no field %s for %q:\n%s", pointer, value, page)
		}
	}
	b.post(path, form)
}
