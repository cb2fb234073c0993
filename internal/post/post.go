// Package post makes the HTTP calls of channels that post JSON to a URL.
package post

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/outbound"
)

// Timeout is how long a receiver may take.
const Timeout = 15 * time.Second

// JSON posts a value as JSON and returns a [channel.Error] unless the receiver accepts it.
func JSON(ctx context.Context, client *outbound.Client, to string, header http.Header, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return &channel.Error{Code: "invalid_message", Permanent: true, Err: err}
	}
	if header == nil {
		header = make(http.Header)
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	return Bytes(ctx, client, to, header, body)
}

// Bytes posts a body and returns a [channel.Error] unless the receiver accepts it.
func Bytes(ctx context.Context, client *outbound.Client, to string, header http.Header, body []byte) error {
	target, err := client.ParseURL(to)
	if err != nil {
		return &channel.Error{Code: "url_not_allowed", Permanent: true, Err: err}
	}
	header.Set("User-Agent", "Fermata")
	return wrap(client.Post(ctx, Timeout, target, header, body))
}

// wrap gives an error a code, and says whether another attempt may succeed.
func wrap(err error) error {
	failed, ok := errors.AsType[*outbound.Error](err)
	switch {
	case !ok:
		return err
	case failed.Status == http.StatusTooManyRequests:
		return &channel.Error{Code: "rate_limited", RetryAfter: failed.RetryAfter, Err: err}
	case failed.Status != 0:
		return &channel.Error{Code: fmt.Sprintf("http_%d", failed.Status), Permanent: isPermanent(failed.Status), RetryAfter: failed.RetryAfter, Err: err}
	case failed.Final:
		return &channel.Error{Code: "address_not_allowed", Permanent: true, Err: err}
	case failed.Timeout():
		return &channel.Error{Code: "timeout", Err: err}
	}
	return &channel.Error{Code: "unreachable", Err: err}
}

// isPermanent reports whether the same request would get the same status again.
func isPermanent(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusLocked:
		return false
	}
	return status < 500
}

// Explain returns an error for the operator: its code and what to do. URLs may be secrets, so the
// cause is not part of it.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*channel.Error](err)
	if !ok {
		return err
	}
	advice := map[string]string{
		"unreachable": "the receiver is not reachable from this machine", "timeout": "the receiver did not answer in time", "rate_limited": "the receiver limits the rate; try again later",
		"unknown_target": "the configuration has no such name", "address_not_allowed": "the address is not public and not allowed by the configuration",
		"http_400": "the receiver rejects the message", "http_401": "the receiver rejects the credentials", "http_403": "the receiver rejects the credentials",
		"http_404": "there is no receiver at the configured URL", "http_410": "the receiver does not exist any more",
	}[e.Code]
	if advice == "" {
		return errors.New(e.Code)
	}
	return fmt.Errorf("%s: %s", e.Code, advice)
}
