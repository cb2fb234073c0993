package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A busy collector gets the spans again. Spans that it rejects, and other errors, are reported.
func TestOTLP_RepeatsWhileBusyAndReportsRejections(t *testing.T) {
	for name, test := range map[string]struct {
		statuses []int
		response string
		calls    int
		err      string
	}{
		"accepted":         {[]int{200}, "", 1, ""},
		"busy":             {[]int{503, 429, 200}, "", 3, ""},
		"failed":           {[]int{500}, "", 1, "the collector answered 500"},
		"partly rejected":  {[]int{200}, "\x0a\x07\x08\x03\x12\x03old", 1, "the collector rejected 3 spans: old"},
		"another response": {[]int{200}, "\xff", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/x-protobuf")
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(test.statuses[calls])
				io.WriteString(w, test.response)
				calls++
			}))
			defer s.Close()
			err := newOTLPClient(s.URL, nil).UploadTraces(t.Context(), nil)
			if calls != test.calls || (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("%d calls, %v; want %d, %q", calls, err, test.calls, test.err)
			}
		})
	}
}
