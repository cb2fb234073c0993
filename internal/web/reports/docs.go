package reports

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/web/page"
)

// docsData is the data of the API documentation.
type docsData struct {
	Title, Version, Description string
	Groups                      []docsGroup
}

// docsGroup is the operations of one part of the API.
type docsGroup struct {
	Name       string
	Operations []docsOperation
}

// docsOperation is one operation.
type docsOperation struct {
	ID, Method, Path, Summary, Description string
	Parameters                             []docsParameter
	Body                                   json.RawMessage // the schema; nil if there is none
	Responses                              []docsResponse
}

type docsParameter struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

type docsResponse struct {
	Status, Description string
	Schema              json.RawMessage
}

// openAPI is what the page shows of an OpenAPI document.
type openAPI struct {
	Info  struct{ Title, Version, Description string }
	Paths map[string]map[string]json.RawMessage
}

type openAPIOperation struct {
	OperationID, Summary, Description string
	Parameters                        []docsParameter
	RequestBody                       struct {
		Content map[string]struct{ Schema json.RawMessage }
	}
	Responses map[string]struct {
		Description string
		Content     map[string]struct{ Schema json.RawMessage }
	}
}

// docs renders the OpenAPI document of the server.
func docs(v *page.Visit) (page.Response, error) {
	r, err := http.NewRequestWithContext(v.Context(), http.MethodGet, "/openapi.json", nil)
	if err != nil {
		return nil, err
	}
	r.RemoteAddr, r.Host = v.RemoteAddr, v.Host
	recorder := httptest.NewRecorder()
	v.Shell.Config.API.ServeHTTP(recorder, r)
	var document openAPI
	if err := json.Unmarshal(recorder.Body.Bytes(), &document); err != nil {
		return nil, err
	}
	data, err := newDocs(document)
	if err != nil {
		return nil, err
	}
	return page.Page{Name: "docs", Title: v.T("docs.title"), Data: data}, nil
}

func newDocs(document openAPI) (docsData, error) {
	data := docsData{Title: document.Info.Title, Version: document.Info.Version, Description: document.Info.Description}
	groups := make(map[string][]docsOperation)
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(document.Paths[path])) {
			var o openAPIOperation
			if err := json.Unmarshal(document.Paths[path][method], &o); err != nil {
				return data, err
			}
			group := docsGroupOf(path)
			groups[group] = append(groups[group], newDocsOperation(path, method, o))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		data.Groups = append(data.Groups, docsGroup{Name: name, Operations: groups[name]})
	}
	return data, nil
}

// docsGroupOf returns the first part of a path behind the prefix of the API.
func docsGroupOf(path string) string {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "/api/v1"), "/")
	name, _, _ := strings.Cut(path, "/")
	return name
}

func newDocsOperation(path, method string, o openAPIOperation) docsOperation {
	one := docsOperation{ID: o.OperationID, Method: strings.ToUpper(method), Path: path, Summary: o.Summary, Description: o.Description, Parameters: o.Parameters}
	for _, content := range o.RequestBody.Content {
		one.Body = content.Schema
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		answer := docsResponse{Status: status, Description: o.Responses[status].Description}
		for _, content := range o.Responses[status].Content {
			answer.Schema = content.Schema
		}
		one.Responses = append(one.Responses, answer)
	}
	return one
}

// schemaName returns the name of the schema that a schema refers to; "" if it does not.
func schemaName(schema json.RawMessage) string {
	var ref struct {
		Ref string `json:"$ref"`
	}
	_ = json.Unmarshal(schema, &ref) // a schema that is not an object has no reference
	return ref.Ref[strings.LastIndex(ref.Ref, "/")+1:]
}
