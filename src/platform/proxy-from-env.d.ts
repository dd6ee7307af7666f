declare module 'proxy-from-env' {
  /** The URL of the proxy for a URL, as the environment says; empty for none. */
  export function getProxyForUrl(url: string): string
}
