package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/agent"
)

// Conform tests the behaviour that all vendor clients share.
func Conform[Q any](t *testing.T, c Client[Q]) {
	t.Run("Error_StatusAndWordsOfTheService", c.testFailures)
	t.Run("Error_AnswerThatIsNone", c.testInvalidAnswers)
	t.Run("Error_NobodyThere_IsTemporary", c.testUnreachable)
	t.Run("Error_NeverHoldsTheKey", c.testKeyLeaks)
	t.Run("Redirect_ToAnotherHost_IsNotFollowed", c.testRedirect)
	t.Run("Retry_IsTwiceUnlessConfigured", c.testRetries)
	t.Run("Retry_NoMoreThanConfigured", c.testRetryLimit)
	t.Run("Retry_NotAfterARefusal", c.testNoRetry)
	t.Run("Context_EndedWhileWaiting_ReturnsItsError", c.testCancelled)
	t.Run("Context_EndedBefore_NothingIsAsked", c.testDeadline)
	t.Run("Request_WhatCannotBeSentIsNotSent", c.testUnsendable)
	t.Run("Stream_EndsWithItsReader", c.testStreamsEnd)
	t.Run("Stream_NothingIsAskedBeforeTheLoop_AndEachLoopAsks", c.testStreamRepeated)
	t.Run("Model_ManyAtOnce", c.testConcurrent)
	t.Run("New_TheKeyOfTheEnvironment", c.testEnvironment)
	t.Run("New_RefusesWhatCannotWork", c.testConfigErrors)
}

func (c *Client[Q]) testFailures(t *testing.T) {
	page := "<html>\n<body>" + strings.Repeat(" upstream ä", 200) + "</body></html>"
	all := map[string]Failure[Q]{
		"timeout":           {c.Refuse(408, "Too slow."), 408, true, "Too slow."},
		"conflict":          {c.Refuse(409, "Locked."), 409, true, "Locked."},
		"rate limit":        {c.Refuse(429, "Slow down."), 429, true, "Slow down."},
		"server error":      {c.Refuse(500, "Sorry."), 500, true, "Sorry."},
		"page of a gateway": {Body[Q](502, http.Header{"Content-Type": {"text/html"}}, page), 502, true, "<html> <body> upstream ä"},
		"no words":          {Body[Q](503, nil, ""), 503, true, "Service Unavailable"},
		"no known words":    {Body[Q](422, nil, `{"detail":[{"msg":"field required"}]}`), 422, false, "field required"},
		"redirect":          {Body[Q](307, http.Header{"Location": {"/v1/elsewhere"}}, ""), 307, false, "redirect"},
	}
	for _, list := range []map[string]Failure[Q]{all, c.Failures} {
		for name, want := range list {
			t.Run(name, func(t *testing.T) {
				Both(t, func(t *testing.T, streaming bool) { c.wantFailure(t, want, streaming) })
			})
		}
	}
}

func (c *Client[Q]) testInvalidAnswers(t *testing.T) {
	page := Failure[Q]{Body[Q](200, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, `<html>Welcome</html>`), 0, false, "text/html; check the base URL"}
	cutOff := func(w http.ResponseWriter, _ *http.Request, _ Q) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, `{"a":[`)
	}
	t.Run("cut off", func(t *testing.T) { c.wantFailure(t, Failure[Q]{cutOff, 0, true, "unexpected EOF"}, false) })
	t.Run("a web page", func(t *testing.T) { Both(t, func(t *testing.T, streaming bool) { c.wantFailure(t, page, streaming) }) })
	t.Run("an answer instead of a stream", func(t *testing.T) { c.wantFailure(t, Failure[Q]{c.Say("Hi"), 0, false, "not a stream"}, true) })
	for name, want := range c.InvalidAnswers {
		t.Run(name, func(t *testing.T) { c.wantFailure(t, want, false) })
	}
}

func (c *Client[Q]) testUnreachable(t *testing.T) {
	Both(t, func(t *testing.T, streaming bool) {
		s := c.serve(t)
		m := c.model(t, s)
		s.Close()
		wantFailure(t, Hello(t.Context(), m, streaming), 0, true, "refused")
	})
}

func (c *Client[Q]) testKeyLeaks(t *testing.T) {
	all := map[string]Reply[Q]{
		"in a page":       Body[Q](500, http.Header{"Content-Type": {"text/html"}}, "<html>"+c.Key+"</html>"),
		"in the id":       Body[Q](400, http.Header{c.RequestID: {c.Key}}, "{}"),
		"in the message":  c.Refuse(401, "headers: "+c.KeyHeader+": "+c.Key),
		"in no JSON":      Body[Q](200, nil, c.Key),
		"in a media type": Body[Q](200, http.Header{"Content-Type": {"text/" + c.Key}}, ""),
	}
	for _, list := range []map[string]Reply[Q]{all, c.Leaks} {
		for name, reply := range list {
			t.Run(name, func(t *testing.T) {
				Both(t, func(t *testing.T, streaming bool) {
					WantNoKey(t, Hello(t.Context(), c.model(t, c.serve(t, reply)), streaming), c.Key)
				})
			})
		}
	}
	t.Run("in an error of the transport", func(t *testing.T) {
		Both(t, func(t *testing.T, streaming bool) {
			m := c.model(t, c.serve(t), func(s *Settings) { s.HTTPClient = &http.Client{Transport: headerLeakingTransport{}} })
			WantNoKey(t, Hello(t.Context(), m, streaming), c.Key)
		})
	})
	t.Run("of a wrong key", func(t *testing.T) {
		m := c.model(t, c.serve(t), func(s *Settings) { s.APIKey = "sk-wrong-" + c.Key })
		wantFailure(t, Hello(t.Context(), m, false), 401, false, ": [API key]")
	})
}

// Neither the conversation nor the key may go elsewhere: Go follows redirects with most headers.
func (c *Client[Q]) testRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer elsewhere.Close()
	Both(t, func(t *testing.T, streaming bool) {
		c.wantFailure(t, Failure[Q]{Body[Q](307, http.Header{"Location": {elsewhere.URL}}, ""), 307, false, "redirect"}, streaming)
	})
}

func (c *Client[Q]) testRetries(t *testing.T) {
	Both(t, func(t *testing.T, streaming bool) {
		s := c.serve(t, c.Refuse(429, "Slow down."), c.Refuse(529, "Overloaded"), c.Echo(strings.ToUpper))
		if err := Hello(t.Context(), c.model(t, s, func(s *Settings) { s.MaxRetries = nil }), streaming); err != nil {
			t.Fatal(err)
		}
		if n := len(s.Requests()); n != 3 {
			t.Errorf("%d requests; want 3: two retries are the default", n)
		}
	})
}

func (c *Client[Q]) testRetryLimit(t *testing.T) {
	limit := c.Refuse(429, "Slow down.")
	for _, retries := range []int{0, 1} {
		Both(t, func(t *testing.T, streaming bool) {
			s := c.serve(t, limit, limit)
			err := Hello(t.Context(), c.model(t, s, func(s *Settings) { s.MaxRetries = &retries }), streaming)
			wantFailure(t, err, 429, true, "Slow down.")
			if n := len(s.Requests()); n != retries+1 {
				t.Errorf("%d requests; want %d", n, retries+1)
			}
		})
	}
}

func (c *Client[Q]) testNoRetry(t *testing.T) {
	Both(t, func(t *testing.T, streaming bool) {
		m := c.model(t, c.serve(t, c.Refuse(400, "No.")), func(s *Settings) { s.MaxRetries = new(5) })
		wantFailure(t, Hello(t.Context(), m, streaming), 400, false, "No.")
	})
}

func (c *Client[Q]) testCancelled(t *testing.T) {
	Both(t, func(t *testing.T, streaming bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := c.serve(t, func(_ http.ResponseWriter, r *http.Request, _ Q) {
			cancel()
			<-r.Context().Done()
		})
		if err := Hello(ctx, c.model(t, s), streaming); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v; want context.Canceled", err)
		}
	})
}

func (c *Client[Q]) testDeadline(t *testing.T) {
	Both(t, func(t *testing.T, streaming bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		if err := Hello(ctx, c.model(t, c.serve(t)), streaming); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v; want context.DeadlineExceeded", err)
		}
	})
}

func (c *Client[Q]) testUnsendable(t *testing.T) {
	m := c.model(t, c.serve(t))
	for name, request := range map[string]*agent.Request{
		"unknown role": {Messages: []agent.Message{{Role: "narrator", Text: "Meanwhile"}}},
		"bad schema":   {Messages: Ask("x").Messages, Tools: []agent.ToolSpec{{Name: "t", Schema: json.RawMessage(`[1]`)}}},
		"no schema":    {Messages: Ask("x").Messages, Tools: []agent.ToolSpec{{Name: "t", Schema: json.RawMessage(`{`)}}},
	} {
		if _, err := m.Generate(t.Context(), request); err == nil {
			t.Errorf("%s: no error", name)
		}
		for piece, err := range m.Stream(t.Context(), request) {
			if piece != nil || err == nil {
				t.Errorf("%s: stream gave %v, %v", name, piece, err)
			}
		}
	}
}

func (c *Client[Q]) testStreamsEnd(t *testing.T) {
	wantStreamsEnd(t, func(t *testing.T, gone chan<- struct{}) agent.Streamer {
		return c.model(t, c.serve(t, func(w http.ResponseWriter, r *http.Request, _ Q) {
			c.Open(w)
			<-r.Context().Done()
			close(gone)
		}))
	})
}

func (c *Client[Q]) testStreamRepeated(t *testing.T) {
	n := 0
	count := c.Echo(func(string) string { n++; return fmt.Sprint(n) })
	s := c.serve(t, count, count)
	answers := c.model(t, s).Stream(t.Context(), Ask("Hello"))
	if n := len(s.Requests()); n != 0 {
		t.Fatalf("%d requests before the loop", n)
	}
	for _, want := range []string{"1", "2"} {
		if _, response, err := Collect(answers); err != nil || response.Message.Text != want {
			t.Errorf("got %v, %v; want %s", response, err, want)
		}
	}
}

func (c *Client[Q]) testConcurrent(t *testing.T) {
	echo := func(text string) string { return "echo of " + text }
	const askers = 16
	var replies []Reply[Q]
	for range 2 * askers {
		replies = append(replies, c.Echo(echo))
	}
	m := c.model(t, c.serve(t, replies...), func(s *Settings) { s.Extra = c.Extra })
	var wg sync.WaitGroup
	for i := range askers {
		for _, streaming := range []bool{false, true} {
			wg.Go(func() {
				text := fmt.Sprint("question ", i)
				response, err := Get(t.Context(), m, streaming, Ask(text))
				if err != nil || response.Message.Text != echo(text) {
					t.Errorf("%s, streaming %v: %v, %v", text, streaming, response, err)
				}
			})
		}
	}
	wg.Wait()
}
