package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// otlpClient sends spans to a collector with OTLP over HTTP. The client of OpenTelemetry would add
// gRPC to the program, which it uses for its settings only.
type otlpClient struct {
	url     string
	headers map[string]string
	http    http.Client

	stopped context.Context // ends when the exporter stops
	stop    context.CancelFunc
}

var _ otlptrace.Client = (*otlpClient)(nil)

func newOTLPClient(url string, headers map[string]string) *otlpClient {
	c := &otlpClient{url: url, headers: headers, http: http.Client{Timeout: otlpTimeout}}
	c.stopped, c.stop = context.WithCancel(context.Background())
	return c
}

const (
	otlpTimeout     = 10 * time.Second // of one call
	otlpPause       = 5 * time.Second  // before a repetition, unless the collector names another
	maxOTLPPause    = 30 * time.Second
	maxOTLPResponse = 1 << 20 // bytes
)

func (c *otlpClient) Start(context.Context) error { return nil }

// Stop interrupts calls.
func (c *otlpClient) Stop(context.Context) error {
	c.stop()
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans, and repeats that for as long as the collector is busy and the context
// lives.
func (c *otlpClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(c.stopped, cancel)()
	defer cancel()
	// TracesData has the same encoding as the request of the collector's service.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	for {
		err := c.post(ctx, body)
		busy, ok := errors.AsType[*busyError](err)
		if !ok {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(busy.pause):
		}
	}
}

// busyError is a response after which a call may be repeated.
type busyError struct {
	status string
	pause  time.Duration
}

func (e *busyError) Error() string { return "the collector answered " + e.status }

func (c *otlpClient) post(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	for name, value := range c.headers {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxOTLPResponse))
	switch {
	case response.StatusCode/100 == 2 && response.Header.Get("Content-Type") == "application/x-protobuf":
		return errors.Join(err, partialSuccess(answer))
	case response.StatusCode/100 == 2:
		return err
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		pause := otlpPause
		if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
			pause = min(max(0, time.Duration(seconds)*time.Second), maxOTLPPause)
		}
		return &busyError{response.Status, pause}
	}
	return fmt.Errorf("the collector answered %s", response.Status)
}

// partialSuccess returns an error if a collector has rejected spans. The response of its service
// has one field, 1; in that, field 1 is the number of rejected spans and field 2 the reason.
func partialSuccess(response []byte) error {
	partial, _ := protoField(response, 1)
	_, rejected := protoField(partial, 1)
	reason, _ := protoField(partial, 2)
	if rejected == 0 && len(reason) == 0 {
		return nil
	}
	return fmt.Errorf("the collector rejected %d spans: %s", rejected, reason)
}

// protoField returns a field of a message; the zero values if it does not have that field.
func protoField(message []byte, number protowire.Number) (text []byte, integer uint64) {
	for len(message) > 0 {
		found, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil, 0
		}
		if value := message[protowire.SizeTag(found):n]; found == number && kind == protowire.BytesType {
			text, _ = protowire.ConsumeBytes(value)
		} else if found == number && kind == protowire.VarintType {
			integer, _ = protowire.ConsumeVarint(value)
		}
		message = message[n:]
	}
	return text, integer
}
