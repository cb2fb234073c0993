package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Kind names what a record is about.
type Kind string

// Body is what a record says beyond who, when and where. The types of this package are all there are.
//
//sumtype:decl
type Body interface{ kind() Kind }

func (Asked) kind() Kind         { return "request.asked" }
func (Delivered) kind() Kind     { return "request.delivered" }
func (Viewed) kind() Kind        { return "request.viewed" }
func (Claimed) kind() Kind       { return "request.claimed" }
func (Released) kind() Kind      { return "request.released" }
func (Escalated) kind() Kind     { return "request.escalated" }
func (Delegated) kind() Kind     { return "request.delegated" }
func (Snoozed) kind() Kind       { return "request.snoozed" }
func (Changed) kind() Kind       { return "request.changed" }
func (Commented) kind() Kind     { return "request.commented" }
func (Decided) kind() Kind       { return "request.decided" }
func (Refused) kind() Kind       { return "request.refused" }
func (Expired) kind() Kind       { return "request.expired" }
func (Withdrawn) kind() Kind     { return "request.withdrawn" }
func (PolicyLoaded) kind() Kind  { return "policy.loaded" }
func (PolicyDenied) kind() Kind  { return "policy.denied" }
func (GrantMade) kind() Kind     { return "grant.made" }
func (GrantUsed) kind() Kind     { return "grant.used" }
func (GrantRevoked) kind() Kind  { return "grant.revoked" }
func (APIKeyMade) kind() Kind    { return "key.made" }
func (APIKeyRevoked) kind() Kind { return "key.revoked" }
func (SessionBegun) kind() Kind  { return "session.begun" }
func (SessionEnded) kind() Kind  { return "session.ended" }
func (EffectBegun) kind() Kind   { return "effect.begun" }
func (EffectEnded) kind() Kind   { return "effect.ended" }
func (RunStarted) kind() Kind    { return "run.started" }
func (RunEnded) kind() Kind      { return "run.ended" }
func (RunParked) kind() Kind     { return "run.parked" }
func (RunRetried) kind() Kind    { return "run.retried" }
func (Exported) kind() Kind      { return "audit.exported" }
func (Erased) kind() Kind        { return "audit.erased" }
func (Verified) kind() Kind      { return "audit.verified" }
func (KeyUsed) kind() Kind       { return "audit.signed" }

// readers decodes the body of each kind.
var readers = table(
	reader[Asked], reader[Delivered], reader[Viewed], reader[Claimed], reader[Released], reader[Escalated], reader[Delegated], reader[Snoozed],
	reader[Changed], reader[Commented], reader[Decided], reader[Refused], reader[Expired], reader[Withdrawn], reader[PolicyLoaded], reader[PolicyDenied], reader[GrantMade],
	reader[GrantUsed], reader[GrantRevoked], reader[APIKeyMade], reader[APIKeyRevoked], reader[SessionBegun], reader[SessionEnded], reader[EffectBegun], reader[EffectEnded], reader[RunStarted], reader[RunEnded], reader[RunParked], reader[RunRetried],
	reader[Exported], reader[Erased], reader[Verified], reader[KeyUsed],
)

type readFunc func(data []byte) (Body, error)

func reader[B Body]() (Kind, readFunc) {
	var none B
	return none.kind(), func(data []byte) (Body, error) {
		var b B
		err := json.Unmarshal(data, &b) // Parse writes it again, and takes one spelling only
		return b, err
	}
}

func table(rows ...func() (Kind, readFunc)) map[Kind]readFunc {
	m := make(map[Kind]readFunc, len(rows))
	for _, row := range rows {
		kind, read := row()
		m[kind] = read
	}
	return m
}

// MaxText is how long a text in a record may be, in bytes. What is longer is a payload.
const MaxText = 4096

// valid is what a type of this package demands of its values beyond being valid in its parts.
type valid interface{ valid() error }

var validType = reflect.TypeFor[valid]()

// check finds what must not be written: texts that JSON could not give back, and values that their types refuse.
func check(v reflect.Value) error {
	if v.Type().Implements(validType) {
		if err := v.Interface().(valid).valid(); err != nil {
			return err
		}
	}
	switch v.Kind() {
	case reflect.String:
		switch text := v.String(); {
		case len(text) > MaxText:
			return fmt.Errorf("a text of %d bytes", len(text))
		case !utf8.ValidString(text):
			return errors.New("a text that is no UTF-8")
		}
	case reflect.Struct:
		if v.Type() == momentType {
			return nil
		}
		for i := range v.NumField() {
			if v.Field(i).IsZero() && strings.Contains(string(v.Type().Field(i).Tag), ",omit") {
				continue // it will not be written
			}
			if err := check(v.Field(i)); err != nil {
				return fmt.Errorf("%s: %w", v.Type().Field(i).Name, err)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := check(v.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

var momentType = reflect.TypeFor[Moment]()

func (d Decided) valid() error { return required("Verb", d.Verb) }
func (r Refused) valid() error { return required("Why", r.Why) }

func (e EffectBegun) valid() error {
	if e.Number < 1 || e.Action.Args == (Digest{}) {
		return errors.New("an effect needs a number and a digest of what is done")
	}
	return nil
}

func (d PolicyDenied) valid() error {
	if d.Action.Name == "" || len(d.Ruling.Rules) == 0 {
		return errors.New("a denial needs the action and the rules that deny it")
	}
	return nil
}

func required[T ~string](name string, value T) error {
	if value == "" {
		return fmt.Errorf("%s is missing", name)
	}
	return nil
}
