package endpoint

import (
	"encoding/base64"
	"encoding/json"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// MaxPage is the maximum page size of a store.
const MaxPage = 1000

// Page is the response of an operation that lists items.
type Page[T any] struct{ Body api.Page[T] }

// PageSize returns the number of items of a page. One more can be read from a store.
func PageSize(limit int) int {
	if limit == 0 {
		return 100
	}
	return min(limit, 999)
}

// Paged makes a page from a list that has one extra item if there is a next page.
func Paged[T, U any](list []T, size int, convert func(T) U, place func(T) any) (*Page[U], error) {
	out := &Page[U]{Body: api.Page[U]{Items: []U{}}}
	more := len(list) > size
	if more {
		list = list[:size]
	}
	for _, item := range list {
		out.Body.Items = append(out.Body.Items, convert(item))
	}
	if more {
		var err error
		if out.Body.Next, err = Cursor(place(list[size-1])); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Cursor returns the cursor of a page that begins after a position.
func Cursor(place any) (string, error) {
	data, err := json.Marshal(place)
	return base64.RawURLEncoding.EncodeToString(data), err
}

// ReadCursor decodes the position where the previous page ended.
func ReadCursor(cursor string, place any) error {
	if cursor == "" {
		return nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = strictjson.Decode(data, place)
	}
	if err != nil {
		return problems.New("bad_request", "invalid cursor")
	}
	return nil
}
