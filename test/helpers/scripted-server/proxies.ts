/** Proxies for the tests: tinyproxy, squid, and one that signs certificates of its own. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { connect, createServer } from 'node:tls'
import { onTestFinished } from 'vitest'
import { startDaemon, startOnFreePort } from '../postgres/server.js'
import { type Certificate, createCertificate } from '../sandbox/certificates.js'
import { createTemporaryFolder } from '../sandbox/temporary-folder.js'
import { startForwardProxy } from './scripted-server.js'

const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])

/** An address of this machine that is not loopback, which is never reached through a proxy. */
export const ipv4 = addresses.find(
  ({ internal, family }) => !internal && family === 'IPv4',
)?.address

interface ProxyKind {
  canRun: boolean
  /** @param tunnelPort the port to which tunnels are allowed, besides 443 */
  configure(port: number, tunnelPort: number | undefined): string
  command(config: string): string[]
  isUp: RegExp
}

const squidRules = '/etc/squid/squid.conf'
const has = (program: string) => spawnSync(program, ['-v']).status === 0

export const proxyKinds: Record<'tinyproxy' | 'squid', ProxyKind> = {
  tinyproxy: {
    canRun: has('tinyproxy'),
    configure: (port, tunnelPort = 563) =>
      `Port ${port}\nListen 127.0.0.1\nAllow 127.0.0.1\nConnectPort 443\nConnectPort ${tunnelPort}\n`,
    // It logs to stdout.
    command: (config) => ['sh', '-c', 'exec tinyproxy -d -c "$0" >&2', config],
    isUp: /Starting main loop/,
  },
  squid: {
    canRun: has('squid') && spawnSync('test', ['-r', squidRules]).status === 0,
    configure: (port, tunnelPort = 563) =>
      [
        `acl SSL_ports port ${tunnelPort}`,
        ...readFileSync(squidRules, 'utf8').split('\n').filter(isRule),
        `http_port 127.0.0.1:${port}`,
        'visible_hostname proxy.example.com',
        'cache_log /dev/null',
        'access_log none',
        'pid_filename none',
        'netdb_filename none',
        'pinger_enable off',
        '',
      ].join('\n'),
    command: (config) => ['squid', '-N', '-d', '1', '-f', config],
    isUp: /Accepting HTTP Socket connections/,
  },
}

/** Debian's rules are used as they are, but not its port and directory. */
function isRule(line: string): boolean {
  return !/^(http_port|coredump_dir)\b/.test(line)
}

/** Returns the address of a proxy that runs until the test ends. */
export async function startProxy(
  { configure, command, isUp }: ProxyKind,
  tunnelPort?: number,
): Promise<string> {
  const folder = createTemporaryFolder()
  chmodSync(folder, 0o755) // a server does not run as root
  const config = join(folder, 'proxy.conf')
  const { port, end } = await startOnFreePort((candidate) => {
    writeFileSync(config, configure(candidate, tunnelPort), { mode: 0o644 })
    return startDaemon(command(config), folder, isUp)
  })
  onTestFinished(() => end('SIGKILL'))
  return `http://127.0.0.1:${port}`
}

/**
 * A proxy that ends TLS itself, as those of companies do: it shows a certificate that its own
 * authority has signed, and reads what it passes on.
 *
 * @param service its port, and the certificate that it is trusted for
 */
export async function startResigningProxy(
  authority: Certificate,
  service: { host: string; port: number; ca: string },
) {
  const receivedBlocks: Buffer[] = []
  const tls = createCertificate({ names: [`IP:${service.host}`], issuer: authority })
  const server = createServer(tls, (socket) => {
    const onward = connect({ ...service, servername: '' })
    socket.once('close', () => onward.destroy())
    socket
      .on('error', () => undefined)
      .on('data', (chunk: Buffer) => void receivedBlocks.push(chunk))
    onward.on('error', () => socket.destroy())
    socket.pipe(onward).pipe(socket)
  }).on('tlsClientError', () => undefined)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo // as it listens on a port
  const proxy = await startForwardProxy({ to: port })
  return { url: proxy.url, seen: () => Buffer.concat(receivedBlocks).toString() }
}
