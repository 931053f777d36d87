package stores

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

type s3Store struct{ c *minio.Client }

func openS3(u *url.URL) (Store, error) {
	secret, _ := u.User.Password()
	transport, err := minio.DefaultTransport(u.Scheme == "https")
	if err != nil {
		return nil, err
	}
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return lateError{c}, nil
	}
	c, err := minio.New(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(u.User.Username(), secret, ""), Secure: u.Scheme == "https",
		Region: region(u), BucketLookup: minio.BucketLookupPath,
		MaxRetries: 1, Transport: transport,
	})
	return s3Store{c}, err
}

// lateError is a connection whose failed writes come back late. A store that
// refuses an object before it has all of it answers and hangs up, some with the
// rest unread: then the next write fails at once, and http.Transport would take
// that for the outcome although the answer lies there.
type lateError struct{ net.Conn }

func (c lateError) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		time.Sleep(200 * time.Millisecond)
	}
	return n, err
}

// region is ?region=… of the address. Stores that are not Amazon's take any,
// and looking it up needs a right of its own.
func region(u *url.URL) string {
	if r := u.Query().Get("region"); r != "" {
		return r
	}
	return "us-east-1"
}

func (s s3Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	_, err := s.c.ListBuckets(ctx)
	return s3Words(err)
}

func (s s3Store) Put(ctx context.Context, collection, id string, value []byte) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := s.put(ctx, collection, id, value)
	if minio.ToErrorResponse(err).Code == "NoSuchBucket" {
		// As for a table of PostgreSQL: another may make it at once.
		makeErr := s.c.MakeBucket(ctx, collection, minio.MakeBucketOptions{Region: "us-east-1"})
		if err = s.put(ctx, collection, id, value); makeErr != nil && minio.ToErrorResponse(err).Code == "NoSuchBucket" {
			err = makeErr
		}
	}
	return s3Words(err)
}

func (s s3Store) put(ctx context.Context, bucket, key string, value []byte) error {
	_, err := s.c.PutObject(ctx, bucket, key, bytes.NewReader(value), int64(len(value)), minio.PutObjectOptions{DisableMultipart: true})
	return err
}

func (s s3Store) Get(ctx context.Context, collection, id string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	o, err := s.c.GetObject(ctx, collection, id, minio.GetObjectOptions{})
	if err != nil {
		return nil, s3Words(err)
	}
	defer o.Close()
	value, err := io.ReadAll(o)
	return value, s3Words(err)
}

func (s s3Store) List(ctx context.Context, collection string) (map[string][]byte, error) {
	listing, cancel := context.WithTimeout(ctx, 4*wait)
	defer cancel()
	all := map[string][]byte{}
	for o := range s.c.ListObjects(listing, collection, minio.ListObjectsOptions{Recursive: true}) {
		if o.Err != nil {
			return nil, s3Words(o.Err)
		}
		value, err := s.Get(ctx, collection, o.Key)
		if err != nil {
			return nil, err
		}
		all[o.Key] = value
	}
	return all, s3Words(listing.Err())
}

func (s s3Store) Drop(ctx context.Context, collection string) error {
	ctx, cancel := context.WithTimeout(ctx, 4*wait)
	defer cancel()
	for o := range s.c.ListObjects(ctx, collection, minio.ListObjectsOptions{Recursive: true}) {
		err := o.Err
		if err == nil {
			err = s.c.RemoveObject(ctx, collection, o.Key, minio.RemoveObjectOptions{})
		}
		if err = s3Words(err); errors.Is(err, ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
	}
	err := s3Words(s.c.RemoveBucket(ctx, collection))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (s s3Store) Close() {}

func s3Words(err error) error {
	if err == nil {
		return nil
	}
	switch minio.ToErrorResponse(err).Code {
	case "NoSuchBucket", "NoSuchKey":
		return both(ErrNotFound, err)
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return both(ErrDenied, err)
	case "XMinioStorageFull", "QuotaExceeded", "InsufficientStorage":
		return both(ErrFull, err)
	}
	return err
}
