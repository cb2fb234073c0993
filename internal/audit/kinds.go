package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a record.
type Kind string

// Body is the content of a record, in addition to actor, time and location. Only the types of this
// package implement it.
//
//sumtype:decl
type Body interface{ kind() Kind }

func (RequestAsked) kind() Kind     { return "request.asked" }
func (RequestDelivered) kind() Kind { return "request.delivered" }
func (RequestViewed) kind() Kind    { return "request.viewed" }
func (RequestRevealed) kind() Kind  { return "request.revealed" }
func (RequestRendered) kind() Kind  { return "request.rendered" }
func (RequestClaimed) kind() Kind   { return "request.claimed" }
func (RequestReleased) kind() Kind  { return "request.released" }
func (RequestEscalated) kind() Kind { return "request.escalated" }
func (RequestDelegated) kind() Kind { return "request.delegated" }
func (RequestSnoozed) kind() Kind   { return "request.snoozed" }
func (RequestChanged) kind() Kind   { return "request.changed" }
func (RequestCommented) kind() Kind { return "request.commented" }
func (RequestDecided) kind() Kind   { return "request.decided" }
func (RequestRefused) kind() Kind   { return "request.refused" }
func (RequestExpired) kind() Kind   { return "request.expired" }
func (RequestWithdrawn) kind() Kind { return "request.withdrawn" }
func (PolicyLoaded) kind() Kind     { return "policy.loaded" }
func (PolicyDenied) kind() Kind     { return "policy.denied" }
func (PolicyAllowed) kind() Kind    { return "policy.allowed" }
func (GrantMade) kind() Kind        { return "grant.made" }
func (GrantUsed) kind() Kind        { return "grant.used" }
func (GrantRevoked) kind() Kind     { return "grant.revoked" }
func (APIKeyMade) kind() Kind       { return "key.made" }
func (APIKeyRevoked) kind() Kind    { return "key.revoked" }
func (SessionBegun) kind() Kind     { return "session.begun" }
func (SessionEnded) kind() Kind     { return "session.ended" }
func (ChannelLinked) kind() Kind    { return "channel.linked" }
func (ChannelUnlinked) kind() Kind  { return "channel.unlinked" }
func (EffectBegun) kind() Kind      { return "effect.begun" }
func (EffectEnded) kind() Kind      { return "effect.ended" }
func (AgentReceipt) kind() Kind     { return "run.receipt" }
func (RunStarted) kind() Kind       { return "run.started" }
func (RunEnded) kind() Kind         { return "run.ended" }
func (RunParked) kind() Kind        { return "run.parked" }
func (RunRetried) kind() Kind       { return "run.retried" }
func (LogExported) kind() Kind      { return "audit.exported" }
func (PayloadsErased) kind() Kind   { return "audit.erased" }
func (LogVerified) kind() Kind      { return "audit.verified" }
func (LogSigned) kind() Kind        { return "audit.signed" }

func (NotificationsChanged) kind() Kind { return "notifications.changed" }
func (WebhookChanged) kind() Kind       { return "webhook.changed" }

// bodyDecoders has the decoder of each kind.
var bodyDecoders = decoderTable(
	bodyDecoder[RequestAsked], bodyDecoder[RequestDelivered], bodyDecoder[RequestViewed], bodyDecoder[RequestRendered], bodyDecoder[RequestClaimed], bodyDecoder[RequestRevealed], bodyDecoder[RequestReleased], bodyDecoder[RequestEscalated], bodyDecoder[RequestDelegated], bodyDecoder[RequestSnoozed],
	bodyDecoder[RequestChanged], bodyDecoder[RequestCommented], bodyDecoder[RequestDecided], bodyDecoder[RequestRefused], bodyDecoder[RequestExpired], bodyDecoder[RequestWithdrawn], bodyDecoder[PolicyLoaded], bodyDecoder[PolicyDenied], bodyDecoder[PolicyAllowed], bodyDecoder[GrantMade],
	bodyDecoder[GrantUsed], bodyDecoder[GrantRevoked], bodyDecoder[APIKeyMade], bodyDecoder[APIKeyRevoked], bodyDecoder[SessionBegun], bodyDecoder[SessionEnded], bodyDecoder[EffectBegun], bodyDecoder[EffectEnded], bodyDecoder[RunStarted], bodyDecoder[RunEnded], bodyDecoder[RunParked], bodyDecoder[RunRetried],
	bodyDecoder[LogExported], bodyDecoder[PayloadsErased], bodyDecoder[LogVerified], bodyDecoder[LogSigned], bodyDecoder[AgentReceipt], bodyDecoder[NotificationsChanged], bodyDecoder[ChannelLinked], bodyDecoder[ChannelUnlinked],
	bodyDecoder[WebhookChanged],
)

// Kinds returns the kinds of records, sorted.
func Kinds() []Kind { return slices.Sorted(maps.Keys(bodyDecoders)) }

type decodeFunc func(data []byte) (Body, error)

func bodyDecoder[B Body]() (Kind, decodeFunc) {
	var none B
	return none.kind(), func(data []byte) (Body, error) {
		var b B
		err := json.Unmarshal(data, &b) // Parse encodes it again and accepts only one encoding
		return b, err
	}
}

func decoderTable(rows ...func() (Kind, decodeFunc)) map[Kind]decodeFunc {
	m := make(map[Kind]decodeFunc, len(rows))
	for _, row := range rows {
		kind, read := row()
		m[kind] = read
	}
	return m
}

// MaxText is the maximum length of a text in a record, in bytes. Longer texts must be payloads.
const MaxText = 4096

// validator is implemented by types with additional checks.
type validator interface{ valid() error }

var validatorType = reflect.TypeFor[validator]()

// checkValue finds values that must not be written: texts that do not round-trip through JSON, and
// values that their types reject.
func checkValue(v reflect.Value) error {
	if v.Type().Implements(validatorType) {
		if err := v.Interface().(validator).valid(); err != nil {
			return err
		}
	}
	switch v.Kind() {
	case reflect.String:
		switch text := v.String(); {
		case len(text) > MaxText:
			return fmt.Errorf("text of %d bytes is too long", len(text))
		case !utf8.ValidString(text):
			return errors.New("text is not valid UTF-8")
		}
	case reflect.Struct:
		if v.Type() == timestampType {
			return nil
		}
		for i := range v.NumField() {
			if v.Field(i).IsZero() && strings.Contains(string(v.Type().Field(i).Tag), ",omit") {
				continue // it is omitted
			}
			if err := checkValue(v.Field(i)); err != nil {
				return fmt.Errorf("%s: %w", v.Type().Field(i).Name, err)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkValue(v.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

var timestampType = reflect.TypeFor[Timestamp]()

func (d RequestDecided) valid() error { return required("Verb", d.Verb) }
func (r RequestRefused) valid() error { return required("Why", r.Why) }

func (e EffectBegun) valid() error {
	if e.Number < 1 || e.Action.Args == (Digest{}) {
		return errors.New("an effect needs a number and a digest of its action")
	}
	return nil
}

func (d PolicyDenied) valid() error {
	if d.Action.Name == "" || len(d.Ruling.Rules) == 0 {
		return errors.New("a denial needs the action and its rules")
	}
	return nil
}

func (d PolicyAllowed) valid() error {
	if d.Kind == "" || len(d.Ruling.Rules) == 0 {
		return errors.New("a ruling needs the kind of the interrupt and its rules")
	}
	return nil
}

func required[T ~string](name string, value T) error {
	if value == "" {
		return fmt.Errorf("%s is missing", name)
	}
	return nil
}
