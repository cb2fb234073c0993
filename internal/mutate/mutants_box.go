package main

// boxMutants are of what keeps secrets.
var boxMutants = []mutant{
	{"I7", "a sealed value opens where it does not belong", "internal/box/box.go",
		swap(`Seal(head, nil, data, bound(version, label))`, `Seal(head, nil, data, nil)`, `sealed[1+idSize:], bound(sealed[0], label))`, `sealed[1+idSize:], nil)`),
		"./internal/box", "TestOpen_Refuses"},
	{"I7", "a key prints itself", "internal/box/box.go",
		swap(`return "key " + hex.EncodeToString(id[:])`, `return "key " + hex.EncodeToString(append(id[:], k[:]...))`),
		"./internal/box", "TestKey_StaysOut"},
	{"I7", "a bad key is printed", "internal/box/box.go",
		swap(`fmt.Errorf("box: a key is %d hexadecimal digits", 2*keySize)`, `fmt.Errorf("box: a key is %d hexadecimal digits, not %s", 2*keySize, text)`),
		"./internal/box", "TestKey_StaysOut"},
	{"I7", "a key that others may read is taken", "internal/box/file.go",
		swap(`mode&0o077 != 0`, `mode&0o077 == 0o777`),
		"./internal/box", "TestMakeFile|TestOpenFile"},
	{"I7", "a packed value opens as one that is not, and the other way round", "internal/box/box.go",
		swap(`return append([]byte{0xff, as}, label...)`, `return []byte(label)`),
		"./internal/box", "TestPack_TheVersionIsSealed"},
	{"I15", "a value may unpack to anything", "internal/box/pack.go",
		swap(`case head.FrameContentSize > mostPacked:`, `case false:`, `zstd.WithDecoderMaxMemory(mostPacked), `, ``),
		"./internal/box", "TestOpen_RefusesWhatUnpacksToTooMuch"},
	{"I7", "what is handed out tells by its length what is in it", "internal/box/box.go",
		swap(`return b.seal(version, label, data)`, `return b.Pack(label, data)`, `return b.Seal(label, data)`, `return b.seal(version, label, data)`),
		"./internal/box", "TestSeal_IsAsLongAsWhatItHolds"},
}
