package outbound

import (
	"encoding/base64"
	"net/http"
	"testing"
	"time"
)

// The example shared by the libraries of the Standard Webhooks specification.
func TestSign_AsEverybodyElseDoes(t *testing.T) {
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	header := make(http.Header)
	Sign(header, [][]byte{key}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got := header.Get("webhook-signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("%s", got)
	}
}
