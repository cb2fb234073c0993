package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// Desk returns the desk of the channels: they act for people through this server's API, in process.
// baseURL is the public address of the server; "" for none.
func (s *Server) Desk(baseURL string) channel.Desk {
	return &channelDesk{server: s, base: strings.TrimSuffix(baseURL, "/")}
}

// channelRestart is the pause before a channel that failed is run again.
const channelRestart = 5 * time.Second

// RunChannels runs the work of channels until ctx ends: it processes stored messages of people, and
// calls the channels that are runners.
func (s *Server) RunChannels(ctx context.Context, channels []channel.Channel, desk channel.Desk) {
	receivers := make(map[string]channel.Receiver)
	var group sync.WaitGroup
	for _, c := range channels {
		if r, ok := c.(channel.Receiver); ok {
			receivers[c.Kind()] = r
		}
		if r, ok := c.(channel.Runner); ok {
			group.Go(func() { s.runChannel(ctx, c.Kind(), r, desk) })
		}
	}
	if len(receivers) > 0 {
		group.Go(func() {
			s.config.Executor.ReceiveInbound(ctx, func(ctx context.Context, kind string, in channel.Inbound) error {
				r, ok := receivers[kind]
				if !ok { // another process may have it
					return &channel.Error{Code: "no_channel"}
				}
				return r.Receive(ctx, desk, in)
			})
		})
	}
	group.Wait()
}

// runChannel calls a runner again after it failed.
func (s *Server) runChannel(ctx context.Context, kind string, r channel.Runner, desk channel.Desk) {
	for ctx.Err() == nil {
		err := r.Run(ctx, desk)
		if ctx.Err() != nil {
			return
		}
		// the error may contain anything, so only its code is logged
		s.config.Log.Error("channel stopped", "channel", kind, "code", codeOf(err))
		select {
		case <-ctx.Done():
		case <-time.After(channelRestart):
		}
	}
}

func codeOf(err error) string { return desk.NoticeFailureCode(err) }

// ChannelHandler serves the HTTP requests of channels, under /channels/ and their kind, within the
// limits of the server. Other requests go to next.
func (s *Server) ChannelHandler(next http.Handler, channels []channel.Channel, desk channel.Desk) http.Handler {
	handlers := make(map[string]http.Handler)
	rejected := func(w http.ResponseWriter, _ *http.Request, p *api.Problem) { http.Error(w, p.Title, p.Status) }
	for _, c := range channels {
		if h, ok := c.(channel.Handler); ok {
			handlers["/channels/"+c.Kind()] = s.Admit(s.limitUnverified(h.Handler(desk)), rejected)
		}
	}
	if len(handlers) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, _ := strings.CutPrefix(r.URL.Path, "/channels/")
		kind, _, _ := strings.Cut(rest, "/")
		if h, ok := handlers["/channels/"+kind]; ok && strings.HasPrefix(r.URL.Path, "/channels/") {
			h.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

type channelDesk struct {
	server *Server
	base   string
}

var _ channel.Desk = (*channelDesk)(nil)

// Accept stores a message.
func (d *channelDesk) Accept(ctx context.Context, kind string, in channel.Inbound) error {
	return d.server.config.Executor.AcceptInbound(ctx, kind, in)
}

// Client returns a client that acts as the linked person.
func (d *channelDesk) Client(ctx context.Context, sender channel.Sender) (*client.Client, string, error) {
	link, err := d.server.config.Executor.ChannelLink(ctx, sender)
	if err != nil {
		return nil, "", err
	}
	p := authn.Principal{
		Account: sender.Account, ID: link.Principal, Name: link.Name,
		Auth: authn.Auth{Method: authn.MethodLinked, Credential: sender.Channel, Strength: requirement.AuthLinked, At: link.At, Until: link.Until},
	}
	for _, role := range link.Roles {
		p.Roles = append(p.Roles, authn.Role(role))
	}
	return client.NewWithTransport(&url.URL{Scheme: "http", Host: "in-process"}, &linkedTransport{server: d.server, principal: p}), link.Principal, nil
}

// SignedIn returns the person who is signed in in a browser.
func (d *channelDesk) SignedIn(r *http.Request) (account, principal string, err error) {
	p, err := d.server.config.Auth.Authenticate(r)
	if errors.Is(err, authn.ErrUnauthenticated) {
		return "", "", nil
	}
	return p.Account, p.ID, err
}

// LinkURL returns a one-time link.
func (d *channelDesk) LinkURL(ctx context.Context, sender channel.Sender) (string, error) {
	if d.base == "" {
		return "", errors.New("server: a link to an account needs the public address of the server")
	}
	token, err := d.server.config.Executor.NewLinkToken(ctx, sender)
	if err != nil {
		return "", err
	}
	return d.base + "/link/" + url.PathEscape(token), nil
}

// RequestURL returns the address of a request.
func (d *channelDesk) RequestURL(id string) string { return channel.RequestURL(d.base, id) }

// linkedKey is the context key of the principal of an in-process call. No HTTP request can set it.
type linkedKey struct{}

// linkedTransport calls the API in process as a linked person.
type linkedTransport struct {
	server    *Server
	principal authn.Principal
}

// RoundTrip serves a request with the API.
func (t *linkedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	call := r.Clone(context.WithValue(r.Context(), linkedKey{}, t.principal))
	call.RequestURI = r.URL.RequestURI()
	call.URL.Scheme, call.URL.Host = "", ""
	call.Header.Del("Authorization")
	if call.Body == nil {
		call.Body = http.NoBody
	}
	answer := httptest.NewRecorder()
	t.server.ServeHTTP(answer, call)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	response := answer.Result()
	response.Request = r
	return response, nil
}
