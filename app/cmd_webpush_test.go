package app

import (
	"os"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/channel/webpush"
)

func TestChannelsWebPushKey_CreatesAKeyForTheConfiguration(t *testing.T) {
	writeFiles(t, map[string]string{"fermata.yaml": "channels: {webpush: {keyFile: push.key, subject: 'mailto:ops@example.com'}}\n"})
	code, out, errOut := call(t, "channels", "webpush-key", "push.key")
	if code != exitOK {
		t.Fatalf("%d %s", code, errOut)
	}
	text, err := os.ReadFile("push.key")
	if err != nil {
		t.Fatal(err)
	}
	key, err := webpush.ParseKey(string(text))
	if err != nil || !strings.Contains(out, key.Public()) || strings.Contains(out, key.Private()) {
		t.Errorf("%v: printed %s", err, out)
	}
	if info, err := os.Stat("push.key"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if code, _, errOut := call(t, "channels", "webpush-key", "push.key"); code != exitUsage || !strings.Contains(errOut, "already exists") {
		t.Errorf("%d %s", code, errOut)
	}
	if code, _, errOut := call(t, "config", "check", "fermata.yaml"); code != exitOK {
		t.Errorf("%d %s", code, errOut)
	}
	c := settingsOf(t, "FERMATA_CHANNELS_WEBPUSH_KEY_FILE=push.key", "FERMATA_CHANNELS_WEBPUSH_SUBJECT=https://example.com")
	all, err := new(program).openChannels(c, nil)
	if err != nil || webPushOf(all) == nil || webPushOf(all).PublicKey() != key.Public() {
		t.Errorf("%v, %v", all, err)
	}
}
