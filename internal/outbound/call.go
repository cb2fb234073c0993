package outbound

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"
)

// Response is the response to a [Client.Call].
type Response struct {
	Status int
	Body   []byte
	// Truncated says that the body is longer than the limit.
	Truncated bool
	// RetryAfter is the delay that the receiver requested, at most [MaxDelay].
	RetryAfter time.Duration
}

// Call sends a request to a URL that ParseURL accepted, and reads at most limit bytes of the
// response. Responses with an error status are no errors. It returns an *Error if there is no
// complete response, and the error of the context if that ends first.
func (c *Client) Call(ctx context.Context, timeout time.Duration, request *http.Request, limit int64) (Response, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connected := false
	traced := httptrace.WithClientTrace(limited, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	answered, err := c.client(request.URL).Do(request.WithContext(traced))
	var body []byte
	if err == nil {
		defer func() { _ = answered.Body.Close() }()
		body, err = io.ReadAll(io.LimitReader(answered.Body, limit+1))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return Response{}, ctx.Err()
	case err != nil:
		failed := connectError(request.URL.Hostname(), err)
		failed.NotSent = !connected
		return Response{}, failed
	}
	r := Response{Status: answered.StatusCode, Body: body, RetryAfter: retryAfter(answered.Header.Get("Retry-After"), time.Now())}
	if int64(len(body)) > limit {
		r.Body, r.Truncated = body[:limit], true
	}
	return r, nil
}
