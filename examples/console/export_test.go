package console

var TryLock = tryLock
