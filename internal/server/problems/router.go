package problems

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
)

// FromRouter converts errors of the router and of request validation.
func FromRouter(status int, message string, errs ...error) huma.StatusError {
	code := map[int]string{
		http.StatusUnauthorized: "unauthenticated", http.StatusForbidden: "forbidden", http.StatusNotFound: "not_found", http.StatusMethodNotAllowed: "method_not_allowed",
		http.StatusRequestTimeout: "timeout", http.StatusRequestEntityTooLarge: "too_large", http.StatusUnsupportedMediaType: "unsupported_media_type", http.StatusTooManyRequests: "rate_limited",
		http.StatusInternalServerError: "internal", http.StatusServiceUnavailable: "unavailable",
	}[status]
	if code == "" {
		code = "bad_request"
	}
	p := New(code, "%s", message)
	p.Limit = map[string]string{"too_large": "body", "timeout": "body_timeout"}[code]
	for _, err := range errs {
		if own, ok := err.(*Problem); ok {
			return own
		}
		field := api.Field{Message: err.Error()}
		if detailed, ok := err.(huma.ErrorDetailer); ok { // without the value: it may be a secret
			field = api.Field{Location: detailed.ErrorDetail().Location, Message: detailed.ErrorDetail().Message}
		}
		if strings.HasPrefix(field.Message, "nested deeper") {
			p.Limit = "depth"
		}
		p.Fields = append(p.Fields, field)
	}
	return p
}
