package page

import (
	"bytes"
	"io"
	"net/http"
	"net/url"

	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/language"
)

// forwarded are the headers of a browser's request that the API gets too: the session, what the
// API needs against cross-origin requests, and what it needs to recognize proxies.
var forwarded = []string{
	"Cookie", "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "User-Agent", "Traceparent", "Tracestate",
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server", "X-Real-Ip",
	"True-Client-Ip", "Cf-Connecting-Ip", "Via",
}

// inProcess calls the API for one request of a browser, without a connection. It is not safe for
// concurrent use.
type inProcess struct {
	api http.Handler
	// browser is the request of the page; w gets renewed cookies.
	browser *http.Request
	w       http.ResponseWriter
}

// apiClient returns a client that calls the API as the browser that sent r.
func apiClient(api http.Handler, w http.ResponseWriter, r *http.Request) *client.Client {
	return client.NewWithTransport(&url.URL{Scheme: "http", Host: "in-process"}, &inProcess{api: api, browser: r, w: w})
}

// RoundTrip serves a request with the API.
func (t *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	call := r.Clone(r.Context())
	call.RequestURI = r.URL.RequestURI()
	call.URL.Scheme, call.URL.Host = "", ""
	call.Host, call.RemoteAddr, call.TLS = t.browser.Host, t.browser.RemoteAddr, t.browser.TLS
	for _, name := range forwarded {
		if values := t.browser.Header.Values(name); len(values) > 0 {
			call.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if call.Body == nil {
		call.Body = http.NoBody
	}
	call.Header.Set("Accept-Language", language.Of(t.browser))
	answer := &recorder{header: make(http.Header)}
	t.api.ServeHTTP(answer, call)
	// a session that is in use is renewed
	if cookies := answer.header.Values("Set-Cookie"); len(cookies) > 0 {
		t.w.Header()["Set-Cookie"] = cookies
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if answer.status == 0 {
		answer.status = http.StatusOK
	}
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.header, Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), Request: r,
	}, nil
}

// recorder is a response in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *recorder) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(data)
}
