/**
 * The programs that tests start and that not every machine has. A test is skipped where its program
 * is missing, and names it in its title. This file is a global setup of vitest: where CI is set, a
 * missing program is an error, so that nothing is skipped unseen.
 */
import { existsSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import type { TestProject } from 'vitest/node'

/** As Debian has them. Other systems run what they can. */
const programs = [
  ...['bash', 'curl', 'fish', 'less', 'openssl', 'script', 'setpriv', 'sqlite3', 'strace'],
  ...['unshare', 'zsh', '/usr/share/bash-completion/bash_completion'],
]
const nightlyPrograms = [
  ...['/usr/lib/postgresql/15/bin/postgres', '/usr/sbin/pgbouncer'],
  ...['buildah', 'caddy', 'groff', 'haproxy', 'nginx', 'promtool', 'python3', 'squid'],
  ...['systemd-analyze', 'tinyproxy'],
]

export default function checkPrograms({ name }: TestProject): void {
  if (!process.env['CI'] || process.platform !== 'linux') return
  const needed = name === 'nightly' ? [...programs, ...nightlyPrograms] : programs
  const missing = needed.filter((program) => !isInstalled(program))
  if (missing.length > 0)
    throw new Error(`Where CI is set, all programs are needed. Install ${missing.join(', ')}`)
}

/** @param program its name, which is looked up in PATH, or its path */
export function isInstalled(program: string): boolean {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.some((folder) => existsSync(resolve(folder, program)))
}
