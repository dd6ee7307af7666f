// Runs the suite, or the files with a name, with what repeats lasting so many times as long:
// npm run soak -- 20 kill
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const [rounds = '10', ...names] = process.argv.slice(2)

if (/^[1-9]\d*$/.test(rounds)) {
  const resolve = (path) => join(import.meta.dirname, path)
  const projects = ['--project', 'suite', '--project', 'nightly']
  const config = ['--config', resolve('../vitest.config.mts'), ...projects]
  const args = [resolve('../../node_modules/vitest/vitest.mjs'), 'run', ...config, ...names]
  const env = { ...process.env, PLANTS_SOAK: rounds }
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', env })
  process.exitCode = status ?? 1
} else {
  process.stderr.write(
    `npm run soak -- ROUNDS [NAME]: ROUNDS must be a whole number from 1 up, but was ${rounds}\n`,
  )
  process.exitCode = 2
}
