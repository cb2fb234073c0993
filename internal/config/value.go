package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/yamldoc"
)

func (s setting) list() bool { return s.value.Kind() == reflect.Slice }

// allowedValues returns the allowed values of a key; nil if any is allowed.
func (s setting) allowedValues() []string {
	if words, ok := s.tag.Lookup("enum"); ok {
		return strings.Split(words, ",")
	}
	return nil
}

// set parses texts into a key: one, or those of a list. The error does not contain secrets.
func (s setting) set(texts []string) error {
	if s.list() {
		list := reflect.MakeSlice(s.value.Type(), 0, len(texts))
		for _, text := range texts {
			list = reflect.Append(list, reflect.ValueOf(text).Convert(s.value.Type().Elem()))
		}
		s.value.Set(list)
		return nil
	}
	value, err := s.parse(texts[0])
	if err != nil {
		return err
	}
	if minimum, ok := s.tag.Lookup("min"); ok && s.below(value, minimum) {
		return fmt.Errorf("%s is less than %s", texts[0], minimum)
	}
	if maximum, ok := s.tag.Lookup("max"); ok && s.above(value, maximum) {
		return fmt.Errorf("%s is more than %s", texts[0], maximum)
	}
	s.value.Set(reflect.ValueOf(value).Convert(s.value.Type()))
	return nil
}

func (s setting) parse(text string) (value any, err error) {
	want := ""
	switch s.value.Interface().(type) {
	case string:
		if words := s.allowedValues(); words != nil && !slices.Contains(words, text) {
			return nil, errors.New(yamldoc.NotOneOf(text, words))
		}
		return text, nil
	case Secret:
		return text, nil
	case bool:
		value, err = map[string]bool{"true": true}[text], boolError(text)
		want = "true or false"
	case int, int64:
		value, err = strconv.ParseInt(text, 10, 64)
		want = "an integer"
	case float64:
		value, err = strconv.ParseFloat(text, 64)
		want = "a number"
	case time.Duration:
		value, err = parseDuration(text)
		want = "a duration with a unit, such as 90s, 24h or 30d"
	default:
		return nil, fmt.Errorf("values of type %s cannot be parsed", s.value.Type())
	}
	if err != nil {
		return nil, fmt.Errorf("%q is not %s", text, want)
	}
	return value, nil
}

func boolError(text string) error {
	if text == "true" || text == "false" {
		return nil
	}
	return errors.New("no bool")
}

func (s setting) below(value any, minimum string) bool {
	limit, err := s.parse(minimum)
	if err != nil {
		return false
	}
	switch v := value.(type) {
	case int64:
		return v < limit.(int64)
	case float64:
		return !(v >= limit.(float64)) // NaN is not a rate, either
	case time.Duration:
		return v < limit.(time.Duration)
	}
	return false
}

// above reports whether an integer exceeds its maximum.
func (s setting) above(value any, maximum string) bool {
	limit, err := s.parse(maximum)
	if err != nil {
		return false
	}
	v, whole := value.(int64)
	return whole && v > limit.(int64)
}

// parseDuration also accepts days, and 0 without a unit.
func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// formatDuration formats a duration for parseDuration, without zero units: 2m instead of 2m0s.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
