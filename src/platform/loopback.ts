/** Whether a host is this very machine, whatever the network says. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(hostname)
}
