package page

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

var (
	ErrNotFound  = &api.Problem{Status: http.StatusNotFound, Code: "not_found"}
	ErrInternal  = &api.Problem{Status: http.StatusInternalServerError, Code: "internal"}
	ErrForbidden = &api.Problem{Status: http.StatusForbidden, Code: "forbidden"}
)

// errorData is the data of the error page.
type errorData struct {
	Title, Text, Next string
	// Detail is the explanation of the API.
	Detail string
	Fields []api.Field
	SignIn bool
	Retry  bool
	// Kept are the fields of a form that was not accepted, so that it can be sent again.
	Kept []keptField
	Path string
}

// keptField is a field of a form.
type keptField struct{ Name, Value string }

// keptFields returns what was typed, in a stable order.
func keptFields(v *Visit) (list []keptField) {
	for _, name := range slices.Sorted(maps.Keys(v.PostForm)) {
		for _, value := range v.PostForm[name] {
			list = append(list, keptField{name, value})
		}
	}
	return list
}

// errorKeys maps a status to the texts of its error page.
var errorKeys = map[int]string{
	http.StatusUnauthorized: "unauthenticated", http.StatusForbidden: "forbidden", http.StatusNotFound: "notfound",
	http.StatusServiceUnavailable: "unavailable", http.StatusTooManyRequests: "busy", http.StatusInternalServerError: "internal",
	http.StatusInsufficientStorage: "unavailable",
}

// ProblemOf returns the problem that an error of the API means.
func ProblemOf(err error) *api.Problem {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return p
	}
	if errors.Is(err, client.ErrInvalidID) {
		return ErrNotFound
	}
	return ErrInternal
}

// writeError writes the page of an error.
func (s *Shell) writeError(v *Visit, err error) {
	if errors.Is(err, context.Canceled) && v.Context().Err() != nil {
		return // the browser has left
	}
	p := ProblemOf(err)
	if p == ErrInternal && err != error(ErrInternal) {
		s.Config.Log.Error("page failed", "path", v.Pattern, "err", err)
	}
	key, known := errorKeys[p.Status]
	if !known {
		key = "request"
	}
	local := v.LocalProblem(p)
	data := errorData{
		Title: v.T("error." + key + ".title"), Text: v.T("error." + key + ".text"), Next: v.T("error." + key + ".next"), Detail: local.Detail, Fields: local.Fields,
		SignIn: p.Status == http.StatusUnauthorized, Retry: p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests,
	}
	switch p.Status {
	case http.StatusUnauthorized, http.StatusNotFound: // the page says it better
		data.Detail = ""
	}
	if v.Method == http.MethodPost && (data.SignIn || data.Retry) {
		data.Kept, data.Path = keptFields(v), v.URL.Path
	}
	answer := Page{Name: "error", Title: data.Title, Status: p.Status, Data: data}
	if err := answer.Write(v); err != nil {
		s.Config.Log.Error("error page failed", "err", err)
		http.Error(v.W, data.Title, p.Status)
	}
}
