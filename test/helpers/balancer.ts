import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { Daemon, onFreePort } from './postgres/daemon.js'
import { serverFolder, writeOwned } from './postgres/identity.js'

const program = '/usr/sbin/haproxy'

/** HAProxy is Debian's: tests that need it say so in their names. */
export const hasBalancer = existsSync(program)

/**
 * Puts HAProxy before the sockets of some services, which gives each request to the next of them that listens.
 *
 * @returns its address
 */
export async function balancer(sockets: string[]): Promise<string> {
  const folder = serverFolder({})
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  let address = ''
  await onFreePort('Address already in use', async (port) => {
    writeOwned(join(folder, 'haproxy.cfg'), configuration(port, sockets), {})
    const daemon = new Daemon([program, '-db', '-f', 'haproxy.cfg'], folder, {})
    onTestFinished(() => daemon.end('SIGTERM'))
    await daemon.says(/nobody has no server/)
    address = `http://127.0.0.1:${port}`
    return daemon
  })
  return address
}

/** It says nothing when it listens; but it does when it then finds that nobody is there, where nobody is. */
function configuration(port: number, sockets: string[]): string[] {
  return [
    'global',
    '  log stderr format raw local0 notice',
    'defaults',
    ...[
      '  mode http',
      '  timeout connect 1s',
      '  timeout client 1m',
      '  timeout server 1m',
      '  balance roundrobin',
      '  option redispatch',
    ],
    'frontend door',
    `  bind 127.0.0.1:${port}`,
    '  default_backend nodes',
    'backend nodes',
    ...sockets.map((socket, index) => `  server node${index} unix@${socket} check inter 100ms fall 2 rise 1`),
    'backend nobody',
    '  log global',
    '  server nobody unix@./nobody check inter 50ms',
  ]
}
