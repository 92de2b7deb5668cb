package blobstore

import (
	"errors"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// S3Address says where in an S3 service a store lies. It never holds credentials.
type S3Address struct {
	Bucket string
	Prefix string // of every key, without slashes at its ends; "" is the whole bucket
	Host   string // of the service, with its port where it has one
	Secure bool   // https
	Region string // "": asked from the service
	// Style is "path", "host", or "" for what the service is known to want.
	Style string
	// AllowLock accepts a bucket that locks objects by default, where deletion cannot be confirmed.
	AllowLock bool
}

const s3Scheme = "s3://"

// IsS3 tells whether a setting names an S3 store; anything else is a folder.
func IsS3(setting string) bool { return strings.HasPrefix(setting, s3Scheme) }

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// ParseS3 reads s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=…&path_style=true|false&object_lock=refuse|allow.
// Everything but the bucket can be left out: the endpoint is then Amazon's, the region that of AWS_REGION. Its errors are
// for the operator and repeat nothing of the address, which may hold what does not belong there.
func ParseS3(address string) (a S3Address, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" || u.Opaque != "" || u.Fragment != "" {
		return a, errors.New("the address must be s3://BUCKET/PREFIX, such as s3://custody/staging?endpoint=https://s3.example:9000")
	}
	if u.User != nil {
		return a, errors.New("credentials do not belong into the address; give them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in the shared credentials file, or as a role of the machine")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return a, errors.New("the part after ? must be name=value, joined by &")
	}
	for name, values := range query {
		if !slices.Contains([]string{"endpoint", "region", "path_style", "object_lock"}, name) || len(values) != 1 {
			return a, errors.New("after ? go endpoint, region, path_style and object_lock, each once; credentials go into the environment")
		}
	}
	a = S3Address{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Host: "s3.amazonaws.com", Secure: true, Region: query.Get("region")}
	if !bucketName.MatchString(a.Bucket) {
		return a, errors.New("the bucket's name must have 3 to 63 characters of [a-z0-9.-]")
	}
	if a.Prefix != "" && checkKey(a.Prefix) != nil || len(a.Prefix) > maxKeyLen/4 {
		return a, errors.New("the prefix must be segments of [a-z0-9_.-] joined by /, 256 characters at most")
	}
	if endpoint := query.Get("endpoint"); endpoint != "" {
		if a.Host, a.Secure, err = parseEndpoint(endpoint); err != nil {
			return a, err
		}
	}
	if a.Region == "" {
		if a.Region = os.Getenv("AWS_REGION"); a.Region == "" {
			a.Region = os.Getenv("AWS_DEFAULT_REGION")
		}
		if a.Region == "" && query.Has("endpoint") {
			a.Region = "us-east-1" // what services that are not Amazon's call themselves
		}
	}
	if style := query.Get("path_style"); style != "" {
		byPath, err := strconv.ParseBool(style)
		if err != nil {
			return a, errors.New("path_style must be true or false")
		}
		if a.Style = "host"; byPath {
			a.Style = "path"
		}
	}
	switch query.Get("object_lock") {
	case "", "refuse":
	case "allow":
		a.AllowLock = true
	default:
		return a, errors.New("object_lock must be refuse or allow")
	}
	return a, nil
}

func parseEndpoint(text string) (host string, secure bool, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return "", false, errors.New("endpoint must be https://HOST or https://HOST:PORT")
	}
	if u.User != nil {
		return "", false, errors.New("credentials do not belong into the endpoint; give them in the environment")
	}
	// One spelling for each service: roots are compared by it.
	host = strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	port := u.Port()
	switch {
	case port != "" && (u.Scheme != "https" || port != "443") && (u.Scheme != "http" || port != "80"):
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return host, u.Scheme == "https", nil
}

// service is the host without the region: the names of Amazon's buckets are the same in all of them.
func (a S3Address) service() string {
	if strings.HasSuffix(a.Host, ".amazonaws.com") {
		return "s3.amazonaws.com"
	}
	return a.Host
}

// Within tells whether the keys of a lie among those of b, or are the same.
func (a S3Address) Within(b S3Address) bool {
	return a.service() == b.service() && a.Bucket == b.Bucket && (b.Prefix == "" || a.Prefix == b.Prefix || strings.HasPrefix(a.Prefix, b.Prefix+"/"))
}
