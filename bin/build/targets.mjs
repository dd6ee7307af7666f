/**
 * The targets that can be built, each with the package that has the Bun for it. macOS is not one of
 * them: on macOS, Bun uses the SQLite of the system, which may lack the fix of the WAL-reset bug.
 */
export const targets = {
  'linux-x64': '@oven/bun-linux-x64',
  'linux-arm64': '@oven/bun-linux-aarch64',
  'linux-x64-musl': '@oven/bun-linux-x64-musl',
  'linux-arm64-musl': '@oven/bun-linux-aarch64-musl',
  'windows-x64': '@oven/bun-windows-x64',
  'windows-arm64': '@oven/bun-windows-aarch64',
}

/** Names the target of this machine, whether or not it can be built. */
export function findHostTarget() {
  const system = process.platform === 'win32' ? 'windows' : process.platform
  /** @type {{ header?: { glibcVersionRuntime?: string } }} */
  const report = system === 'linux' ? process.report.getReport() : {}
  const isMusl = system === 'linux' && report.header?.glibcVersionRuntime === undefined
  return `${system}-${process.arch}${isMusl ? '-musl' : ''}`
}

export function formatExecutableName(name, target) {
  return target.startsWith('windows-') ? `${name}.exe` : name
}
