package slackfake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// method is a method of the Web API. Its function is called with the lock held.
type method struct {
	// scopes lists alternatives: one of them is needed. It is empty if that depends on the channel.
	scopes []string
	// app says that the method needs the token of the app.
	app  bool
	call func(s *Slack, a args) (any, error)
}

var methods = map[string]method{
	"auth.test":             {call: (*Slack).authTest},
	"chat.postMessage":      {scopes: []string{"chat:write"}, call: (*Slack).postMessage},
	"chat.update":           {scopes: []string{"chat:write"}, call: (*Slack).updateMessage},
	"chat.postEphemeral":    {scopes: []string{"chat:write"}, call: (*Slack).postEphemeral},
	"views.open":            {call: (*Slack).openView},
	"conversations.info":    {call: (*Slack).conversationInfo},
	"conversations.list":    {call: (*Slack).listConversations},
	"conversations.history": {call: (*Slack).conversationHistory},
	"conversations.members": {call: (*Slack).conversationMembers},
	"conversations.open":    {scopes: []string{"im:write"}, call: (*Slack).openConversation},
	"users.info":            {scopes: []string{"users:read"}, call: (*Slack).userInfo},
	"usergroups.users.list": {scopes: []string{"usergroups:read"}, call: (*Slack).userGroupMembers},
	"apps.connections.open": {app: true, call: (*Slack).openConnection},
}

// apiError is an error response with details.
type apiError struct {
	code     string
	messages []string
	needed   string
}

func (e *apiError) Error() string { return e.code }

func fail(code string, messages ...string) error { return &apiError{code: code, messages: messages} }

// args are the arguments of a call.
type args map[string]string

// maxCall is the size limit of a call.
const maxCall = 1 << 20

func (s *Slack) serveMethod(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("method")
	a, token, err := readArgs(r)
	if err != nil {
		writeJSON(w, http.StatusOK, errorBody(err))
		return
	}
	s.mu.Lock()
	answer, failure, err := s.serve(name, token, a)
	call := Call{Method: name, Channel: a["channel"], Args: a, At: s.config.Now()}
	switch {
	case failure.LoseResponse:
		call.Code = "lost"
	case err != nil:
		call.Code = err.Error()
	}
	s.calls = append(s.calls, call)
	scopes := strings.Join(s.config.Scopes, ",")
	s.mu.Unlock()
	if failure.LoseResponse {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-OAuth-Scopes", scopes)
	status := http.StatusOK
	if failure.Status != 0 {
		status = failure.Status
	}
	if failure.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(failure.RetryAfter/time.Second)))
		status = http.StatusTooManyRequests
	}
	if err != nil {
		writeJSON(w, status, errorBody(err))
		return
	}
	writeJSON(w, status, answer)
}

// serve performs a call. A failure is how its response differs.
func (s *Slack) serve(name, token string, a args) (answer any, failure Failure, err error) {
	m, ok := methods[name]
	if !ok {
		return nil, failure, fail("unknown_method")
	}
	if queue := s.failures[name]; len(queue) > 0 {
		failure, s.failures[name] = queue[0], queue[1:]
		switch {
		case failure.RetryAfter > 0:
			return nil, failure, fail("ratelimited")
		case !failure.LoseResponse:
			return nil, failure, fail(failure.Code)
		}
	}
	if err := s.checkToken(m, token); err != nil {
		return nil, failure, err
	}
	wait := s.limited(name, "")
	if wait == 0 && (name == "chat.postMessage" || name == "chat.postEphemeral") {
		wait = s.limited(channelRate, name+" "+a["channel"])
	}
	if wait > 0 {
		return nil, Failure{RetryAfter: time.Duration(wait) * time.Second}, fail("ratelimited")
	}
	answer, err = m.call(s, a)
	return answer, failure, err
}

func (s *Slack) checkToken(m method, token string) error {
	switch {
	case token == "":
		return fail("not_authed")
	case token != s.botToken && token != s.appToken:
		return fail("invalid_auth")
	case m.app != (token == s.appToken):
		return fail("not_allowed_token_type")
	}
	if len(m.scopes) > 0 {
		return s.needScope(m.scopes...)
	}
	return nil
}

// needScope checks that the bot has one of some scopes.
func (s *Slack) needScope(scopes ...string) error {
	for _, scope := range scopes {
		if slices.Contains(s.config.Scopes, scope) {
			return nil
		}
	}
	return &apiError{code: "missing_scope", needed: strings.Join(scopes, ",")}
}

// readArgs reads the arguments and the token from a form or from JSON.
func readArgs(r *http.Request) (a args, token string, err error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxCall+1))
	if err != nil || len(body) > maxCall {
		return nil, "", fail("invalid_post_type")
	}
	a = make(args)
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		var fields map[string]json.RawMessage
		if len(body) > 0 && json.Unmarshal(body, &fields) != nil {
			return nil, "", fail("invalid_json")
		}
		for name, value := range fields {
			var text string
			if json.Unmarshal(value, &text) != nil {
				text = string(value)
			}
			a[name] = text
		}
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, "", fail("invalid_form_data")
		}
		for name := range form {
			a[name] = form.Get(name)
		}
	default:
		return nil, "", fail("invalid_post_type")
	}
	token = a["token"]
	delete(a, "token")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		token = bearer
	}
	return a, token, nil
}

func errorBody(err error) any {
	body := map[string]any{"ok": false, "error": err.Error()}
	if detail, ok := err.(*apiError); ok {
		if len(detail.messages) > 0 {
			body["response_metadata"] = map[string]any{"messages": detail.messages}
		}
		if detail.needed != "" {
			body["needed"] = detail.needed
		}
	}
	return body
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *Slack) authTest(args) (any, error) {
	return map[string]any{
		"ok": true, "url": s.url + "/", "team": "Fake", "user": s.bot.Name, "team_id": s.team, "user_id": s.bot.ID, "bot_id": "B" + s.bot.ID[1:],
	}, nil
}

// compact returns JSON without white space, or an error that names the argument.
func compact(name, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return nil, fail("invalid_"+name+"_format", fmt.Sprintf("[ERROR] %s is not JSON", name))
	}
	return b.Bytes(), nil
}
