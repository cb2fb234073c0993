package claude

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
)

// server answers the hook of one process, and its calls of the tools with questions, on a free port
// of 127.0.0.1 with its own token.
type server struct {
	turn  *turn
	http  http.Server
	url   string
	token string
	close func()
}

// maxBody is the maximum size of a call of the CLI, in bytes.
const maxBody = 64 << 20

func serve(ctx context.Context, t *turn) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{turn: t, url: "http://" + listener.Addr().String(), token: rand.Text()}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook", s.hook)
	mux.HandleFunc("POST /mcp", s.mcp)
	s.http = http.Server{Handler: s.authenticated(mux), BaseContext: func(net.Listener) context.Context { return ctx }}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.http.Serve(listener) })
	s.close = sync.OnceFunc(func() {
		_ = s.http.Close()
		serving.Wait()
	})
	return s, nil
}

func (s *server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.token)) != 1 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// settings returns the settings of the CLI: the hook decides about every call.
func (s *server) settings() any {
	hook := map[string]any{"type": "http", "url": s.url + "/hook", "headers": s.header(), "timeout": int(hookTimeout.Seconds())}
	return map[string]any{
		"cleanupPeriodDays": 3650,
		"hooks":             map[string]any{"PreToolUse": []any{map[string]any{"matcher": "*", "hooks": []any{hook}}}},
	}
}

func (s *server) header() map[string]string {
	return map[string]string{"Authorization": "Bearer " + s.token}
}

// mcpServers returns the MCP servers of a graph, with that of its questions.
func (s *server) mcpServers(g *Graph) any {
	servers := make(map[string]any)
	for name, settings := range g.MCPServers {
		servers[name] = settings
	}
	if len(g.Questions) > 0 {
		servers[ownServer] = map[string]any{"type": "http", "url": s.url + "/mcp", "headers": s.header(), "alwaysLoad": true}
	}
	return map[string]any{"mcpServers": servers}
}

func (s *server) hook(w http.ResponseWriter, r *http.Request) {
	var c hookCall
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil || c.ID == "" || c.Tool == "" || c.Event != "PreToolUse" {
		s.turn.cancel(&CLIError{"the CLI called the hook in an unknown form", err})
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	decided := s.turn.hook(r.Context(), c)
	output := map[string]any{"hookEventName": c.Event, "permissionDecision": decided.Decision}
	if decided.Reason != "" {
		output["permissionDecisionReason"] = decided.Reason
	}
	if decided.Input != nil {
		output["updatedInput"] = decided.Input
	}
	respond(w, map[string]any{"hookSpecificOutput": output})
}

func respond(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the process has ended
}

// rpc is a JSON-RPC request of MCP.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Name            string          `json:"name"`
		Meta            json.RawMessage `json:"_meta"`
	} `json:"params"`
}

var errMethod = errors.New("method not found")

// mcp serves the tools with questions. It has only the methods that the CLI needs for them.
func (s *server) mcp(w http.ResponseWriter, r *http.Request) {
	var request rpc
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if request.ID == nil { // a notification
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result, err := s.call(request)
	response := map[string]any{"jsonrpc": "2.0", "id": request.ID}
	if err != nil {
		response["error"] = map[string]any{"code": -32601, "message": err.Error()}
	} else {
		response["result"] = result
	}
	respond(w, response)
}

func (s *server) call(request rpc) (any, error) {
	switch request.Method {
	case "initialize":
		return map[string]any{
			"protocolVersion": request.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": ownServer, "version": "1"},
		}, nil
	case "ping":
		return map[string]any{}, nil
	case "tools/list":
		var tools []any
		for _, q := range s.turn.graph.Questions {
			tools = append(tools, map[string]any{
				"name": q.Kind, "description": q.Description, "inputSchema": q.Input,
				// otherwise the CLI shortens an answer of more than 50 KB
				"_meta": map[string]any{"anthropic/maxResultSizeChars": 200_000},
			})
		}
		return map[string]any{"tools": tools}, nil
	case "tools/call":
		var meta struct {
			ID string `json:"claudecode/toolUseId"`
		}
		_ = json.Unmarshal(request.Params.Meta, &meta) // without an id there is no answer
		text, ok := s.turn.question(meta.ID, request.Params.Name)
		if !ok {
			text = json.RawMessage("No person has answered this call.")
		}
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": string(text)}}, "isError": !ok}, nil
	}
	return nil, errMethod
}
