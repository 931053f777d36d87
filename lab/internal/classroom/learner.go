package classroom

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Nickname makes a learner's anonymous token, such as "amber-otter-3f2a", of
// random bytes: it says nothing of the person, and can be said aloud. random
// gives n random bytes as hex. Two of a class of 200 get the same with a
// probability below one in a thousand.
func Nickname(random func(n int) string) string {
	digits := random(4)
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != 4 {
		panic("classroom: random gave " + digits)
	}
	return fmt.Sprintf("%s-%s-%s", adjectives[int(b[0])%len(adjectives)], animals[int(b[1])%len(animals)], digits[4:])
}

var (
	adjectives = strings.Fields("amber azure brave brisk calm clear coral cosy crisp dapper eager early fair fleet frosty gentle " +
		"glad golden happy hazel jolly keen kind lively lucky mellow merry misty neat noble olive plucky")
	animals = strings.Fields("badger beaver bison crane curlew dipper dolphin falcon ferret finch gecko heron ibex jackal kestrel lemur " +
		"lynx marten mole newt otter owl panda plover puffin raven robin seal stoat tapir tern vole")
)

// maxName is how long a name may be, in characters.
const maxName = 64

// CleanName checks a name that a learner gave: one line that can be shown.
func CleanName(name string) (string, error) {
	name = strings.Join(strings.Fields(name), " ")
	switch {
	case name == "":
		return "", errors.New("the name is empty")
	case !utf8.ValidString(name), strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return "", errors.New("the name has characters that can't be shown")
	case utf8.RuneCountInString(name) > maxName:
		return "", fmt.Errorf("the name is longer than %d characters", maxName)
	}
	return name, nil
}

// reasonOf leaves out of a file error the path, which stands before it.
func reasonOf(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// readFull fills b as far as the file goes.
func readFull(f *os.File, b []byte) (int, error) {
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // it got shorter meanwhile
	}
	return n, err
}
