import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { plants } from './programs.mjs'
import { run } from './run.mjs'

const loopCount = 400 // creates of the shell loop, which are enough: each starts a curl
const connections = 64
const duration = 5 // seconds of wrk

/**
 * What asks a service for creates, each from its start to its end: gives the rows a second, and how many plants are
 * then in the store, from `least` to `most`. A bar is how many times as fast `plants import` has to be.
 */
export const clients = {
  plants: {
    title: 'plants import',
    command: process.execPath,
    ask: async ({ url, input: { rows, count }, node, env }) => {
      const { seconds } = await run([node, plants, 'import', `${rows}.ndjson`, '--store', url], { env })
      return { rate: count / seconds, least: count, most: count }
    },
  },
  plain: {
    title: `node:http, ${connections} connections`,
    command: process.execPath,
    bar: 0.9,
    ask: async ({ url, input: { rows, count }, node, env }) => {
      const { seconds } = await run(
        [node, join(import.meta.dirname, 'plain-client.mjs'), `${rows}.ndjson`, url, String(connections)],
        {
          env,
        },
      )
      return { rate: count / seconds, least: count, most: count }
    },
  },
  ceiling: wrk({ title: `wrk, ${connections} connections`, bar: 0.6 }),
  keys: wrk({ title: `wrk, ${connections} connections, with Idempotency-Key`, more: ['keys'] }),
  curl: {
    title: 'xargs -P8 -n1 curl',
    command: 'curl',
    bar: 20,
    ask: async ({ url, input, folder, token, env }) => {
      const [lines, config] = [join(folder, 'lines'), join(folder, 'curl.conf')]
      const bodies = readFileSync(`${input.rows}.ndjson`, 'utf8').split('\n', loopCount).filter(Boolean)
      writeFileSync(lines, bodies.join('\0')) // to xargs a quote is special, but for -0
      writeFileSync(
        config,
        `header = "Authorization: Bearer ${token}"\nheader = "Content-Type: application/json"\nurl = "${url}/plants"\n`,
      )
      const { seconds } = await run(['xargs', '-0', '-P8', '-n1', 'curl', '-fsS', '-K', config, '--data-binary'], {
        env,
        input: lines,
      })
      return { rate: bodies.length / seconds, least: bodies.length, most: bodies.length }
    },
  },
}

/** The service's own ceiling: what it answers to a program that does nothing but ask. */
function wrk({ title, bar, more = [] }) {
  const script = join(import.meta.dirname, 'ceiling.lua')
  const ask = async ({ url, input, token, env }) => {
    const options = [
      '-t1',
      `-c${connections}`,
      `-d${duration}s`,
      '-s',
      script,
      url,
      '--',
      `${input.rows}.ndjson`,
      token,
      ...more,
    ]
    const { out } = await run(['wrk', ...options], { env, keepsOut: true })
    const { requests, microseconds, failed } = JSON.parse(/^\{.*\}$/m.exec(out)[0])
    if (failed > 0) throw new Error(`wrk: ${failed} requests failed`)
    // What was on its way at the end is stored as well, and not counted.
    return { rate: (requests * 1e6) / microseconds, least: requests, most: requests + connections }
  }
  return { title, command: 'wrk', bar, ask }
}
