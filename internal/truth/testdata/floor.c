// The floor: what it costs at least to receive a truth server's events on this
// machine. N connections, one epoll loop, a recvmsg with the kernel's stamp for
// each that is readable, and a search for the server's stamp in the bytes. No
// HTTP, no JSON, nothing kept but the error of each event.
//
//   floor HOST PORT STREAMS TOKENS      (prints one line of JSON)
//
// CPU is counted from when all requests are sent to the last event.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) {
  perror(what);
  exit(1);
}

static int64_t cpu_ns(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000LL + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000LL;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double quantile(const double *sorted, long n, double q) { return n ? sorted[(long)((n - 1) * q)] : 0; }

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: floor HOST PORT STREAMS TOKENS\n");
    return 2;
  }
  int streams = atoi(argv[3]);
  long want = (long)streams * atol(argv[4]), events = 0, reads = 0, coarse = 0;
  double *error = malloc(sizeof *error * want);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
  inet_pton(AF_INET, argv[1], &to.sin_addr);

  int poll = epoll_create1(0), on = 1;
  int *fds = malloc(sizeof *fds * streams);
  for (int i = 0; i < streams; i++) {
    int fd = fds[i] = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to)) die("connect");
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &e)) die("epoll_ctl");
  }
  for (int i = 0; i < streams; i++) {
    char body[64], request[256];
    int n = snprintf(body, sizeof body, "{\"prompt\":\"truth-id:%d\"}", i);
    n = snprintf(request, sizeof request, "POST /v1/chat/completions HTTP/1.1\r\nHost: floor\r\nContent-Length: %d\r\n\r\n%s", n, body);
    if (write(fds[i], request, n) != n) die("write");
  }
  // As the other client does, let the last requests arrive first.
  usleep(50000);

  int64_t cpu = cpu_ns();
  static char buf[65536];
  static const char key[] = "\"content\":\"1";
  struct epoll_event ready[256];
  while (events < want) {
    int n = epoll_wait(poll, ready, 256, 10000);
    if (n == 0) {
      fprintf(stderr, "nothing came for 10 s after %ld of %ld events\n", events, want);
      return 1;
    }
    for (int i = 0; i < n; i++) {
      char control[64];
      struct iovec v = {buf, sizeof buf};
      struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
      ssize_t got = recvmsg(ready[i].data.fd, &m, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) die("the server closed a connection");
      struct timespec at = {0};
      for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) memcpy(&at, CMSG_DATA(c), sizeof at);
      if (!at.tv_sec) {
        clock_gettime(CLOCK_REALTIME, &at);
        coarse++;
      }
      int64_t ns = at.tv_sec * 1000000000LL + at.tv_nsec;
      int found = 0;
      for (char *p = buf; (p = memmem(p, buf + got - p, key, sizeof key - 1)); found++) {
        p += sizeof key - 2;
        int64_t sent = 0;
        for (int k = 0; k < 19; k++) sent = sent * 10 + (p[k] - '0');
        double us = (ns - sent) / 1e3;
        if (events < want) error[events++] = us < 0 ? -us : us;
      }
      reads += found > 0;
    }
  }
  cpu = cpu_ns() - cpu;
  qsort(error, events, sizeof *error, by_value);
  printf("{\"events\":%ld,\"reads\":%ld,\"coarse\":%ld,\"cpu_ns\":%lld,\"p50_us\":%.2f,\"p99_us\":%.2f,\"p999_us\":%.2f}\n", events, reads, coarse,
         (long long)cpu, quantile(error, events, 0.5), quantile(error, events, 0.99), quantile(error, events, 0.999));
  return 0;
}
