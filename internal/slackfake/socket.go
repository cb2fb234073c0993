package slackfake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// maxSocketResponse is the size of a Socket Mode response that Slack drops silently.
const maxSocketResponse = 20 << 10

// socket is a Socket Mode connection of the app.
type socket struct {
	conn *websocket.Conn
	mu   sync.Mutex // for writes
}

func (c *socket) write(message any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(ackTimeout))
	return c.conn.WriteJSON(message)
}

func (s *Slack) openConnection(args) (any, error) {
	ticket := randomID(26)
	s.tickets[ticket] = true
	return map[string]any{"ok": true, "url": "ws" + strings.TrimPrefix(s.url, "http") + "/link?ticket=" + ticket}, nil
}

// serveSocket serves a Socket Mode connection. Its ticket can be used once.
func (s *Slack) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	ok := s.tickets[ticket]
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if !ok {
		http.Error(w, "bad ticket", http.StatusForbidden)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }} // the ticket authenticates
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &socket{conn: conn}
	if c.write(map[string]any{"type": "hello", "num_connections": 1, "connection_info": map[string]any{"app_id": s.appID}}) != nil {
		return
	}
	s.mu.Lock()
	s.sockets = append(s.sockets, c)
	s.mu.Unlock()
	stop := make(chan struct{})
	go c.ping(stop)
	s.readAcks(c)
	close(stop)
	s.mu.Lock()
	for i, open := range s.sockets {
		if open == c {
			s.sockets = append(s.sockets[:i:i], s.sockets[i+1:]...)
			break
		}
	}
	s.mu.Unlock()
	_ = conn.Close()
}

// pingInterval is how often Slack pings.
const pingInterval = 5 * time.Second

func (c *socket) ping(stop chan struct{}) {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		_ = c.conn.WriteControl(websocket.PingMessage, []byte("Ping"), time.Now().Add(ackTimeout))
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

// readAcks reads acknowledgements until the connection ends.
func (s *Slack) readAcks(c *socket) {
	for {
		_, data, err := c.conn.ReadMessage()
		if err != nil {
			return
		}
		if len(data) > maxSocketResponse {
			continue
		}
		var ack struct {
			ID      string          `json:"envelope_id"`
			Payload json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(data, &ack) != nil {
			continue
		}
		s.mu.Lock()
		waiting := s.waiting[ack.ID]
		delete(s.waiting, ack.ID)
		s.mu.Unlock()
		if waiting != nil {
			waiting <- ack.Payload
		}
	}
}

// deliverSocket sends an envelope and waits for its acknowledgement.
func (s *Slack) deliverSocket(ctx context.Context, kind string, payload any) (*Delivery, error) {
	s.mu.Lock()
	id := "env-" + randomID(20)
	s.mu.Unlock()
	return s.sendEnvelope(ctx, id, kind, payload)
}

// sendEnvelope sends an envelope with an id over one of the open sockets.
func (s *Slack) sendEnvelope(ctx context.Context, id, kind string, payload any) (*Delivery, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	acked := make(chan json.RawMessage, 1)
	s.mu.Lock()
	if len(s.sockets) == 0 {
		s.mu.Unlock()
		return nil, errors.New("slackfake: no open socket")
	}
	s.ids++
	c := s.sockets[s.ids%len(s.sockets)]
	s.waiting[id] = acked
	s.mu.Unlock()
	began := time.Now()
	if err := c.write(map[string]any{"envelope_id": id, "type": kind, "accepts_response_payload": true, "payload": json.RawMessage(body)}); err != nil {
		return nil, fmt.Errorf("slackfake: the socket failed: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	select {
	case answer := <-acked:
		return &Delivery{Header: http.Header{"Envelope-Id": {id}}, Body: body, Status: http.StatusOK, Response: answer, Elapsed: time.Since(began)}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("slackfake: the app did not acknowledge the envelope: %w", ctx.Err())
	}
}

// ReplayEnvelope sends the payload of a Socket Mode delivery again with the same envelope id, as
// Slack does if it missed the acknowledgement.
func (s *Slack) ReplayEnvelope(ctx context.Context, d *Delivery) (*Delivery, error) {
	return s.sendEnvelope(ctx, d.Header.Get("Envelope-Id"), "interactive", json.RawMessage(d.Body))
}

// Sockets returns the number of open Socket Mode connections.
func (s *Slack) Sockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sockets)
}

// dropSockets closes all Socket Mode connections.
func (s *Slack) dropSockets() {
	s.mu.Lock()
	open := s.sockets
	s.sockets = nil
	s.mu.Unlock()
	for _, c := range open {
		_ = c.conn.Close()
	}
}
