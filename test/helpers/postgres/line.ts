import { connect, type Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { Hostile } from '../hostile.js'
import { type Database, openShared } from '../postgres.js'

/** A message of the protocol, each character of whose body is a byte. */
function message(letter: string, body: string): string {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length + 4)
  return `${letter}${length.toString('latin1')}${body}`
}

/** What a server says at a login (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
export const says = {
  clear: message('R', '\0\0\0\x03'),
  md5: message('R', '\0\0\0\x05salt'),
  refused: message('E', 'SFATAL\0C28P01\0Mwrong password\0\0'),
}

const sslRequest = '\0\0\0\x08\x04\xd2\x16\x2f'

/**
 * Listens where a PostgreSQL server could, and records the logins that begin and the passwords.
 *
 * @param answers to the startup message, and to each message after it, on every connection
 */
export async function listener(answers: string[], tls?: { cert: string; key: string }) {
  const heard = { port: 0, logins: 0, passwords: [] as string[] }
  const join = (socket: Socket): void => {
    let answered = 0
    socket.on('error', () => undefined)
    socket.removeAllListeners('data').on('data', (data) => {
      const text = data.toString('latin1')
      if (text === sslRequest) {
        socket.write(tls ? 'S' : 'N')
        if (!tls) return
        const secureContext = createSecureContext(tls)
        const near = socket.removeAllListeners('data')
        return join(new TLSSocket(near, { isServer: true, secureContext }))
      }
      if (text.startsWith('X')) return // a client that leaves
      if (answered === 0) heard.logins += 1
      else heard.passwords.push(text.slice(5)) // without the letter and the length
      const answer = answers[answered]
      answered += 1
      if (answer === undefined) socket.end()
      else socket.write(answer, 'latin1')
    })
  }
  const { port } = await Hostile.listen({ onConnect: join })
  return Object.assign(heard, { port })
}

/**
 * When a connection is cut: "before" the server gets what was said; when it was "sent", so that the
 * server goes on alone; or when the server has "answered", and nobody has heard it.
 */
export type Moment = 'before' | 'sent' | 'answered'

interface Cut {
  text: string
  /** or the SQLSTATE of the error that is said in place of the answer */
  moment: Moment | { code: string }
}

export async function openByLine(database: Database, options?: Parameters<typeof openShared>[1]) {
  const line = await lineTo(database)
  return { line, store: await openShared({ url: line.url, env: database.env }, options) }
}

const readyForQuery = Buffer.from('Z\0\0\0\x05')

/** A line to the server of a database, which can be cut. */
export async function lineTo({ url }: { url: string }) {
  const address = new URL(url)
  const target = Number(address.port)
  const cuts: Cut[] = []
  let isSilent = false

  const join = (near: Socket) => {
    const far = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true })
    far.on('error', () => near.destroy()).on('end', () => near.end())
    near.on('close', () => far.end()) // after what is on its way
    let isAwaited = false
    let code: string | undefined
    near.removeAllListeners('data').on('data', (data) => {
      const [cut] = cuts
      const moment = cut && data.includes(cut.text) ? cuts.shift()?.moment : undefined
      if (moment !== undefined) line.cuts += 1
      if (moment === 'before') {
        near.destroy()
        far.destroy()
        return
      }
      far.write(data)
      isAwaited ||= moment === 'answered'
      if (typeof moment === 'object') code = moment.code
      if (moment === 'sent') near.destroy()
    })
    far.on('data', (data) => {
      const isOver = data.subarray(-6, -1).equals(readyForQuery)
      if (isAwaited && isOver) near.destroy()
      if (code === undefined) {
        if (!isAwaited && !isSilent) near.write(data)
      } else if (isOver) {
        near.write(message('E', `SERROR\0C${code}\0Mlost\0\0`) + message('Z', 'I'), 'latin1')
        code = undefined
      }
    })
  }

  const hostile = await Hostile.listen({ onConnect: join })
  address.port = `${hostile.port}`
  const line = {
    url: address.href,
    cuts: 0,
    /** Cuts the next connection over which a text goes to the server; then what is told next. */
    cut: (text: string, moment: Moment) => void cuts.push({ text, moment }),
    /** Says an error in place of the next answer to a text, which the server gets. */
    answer: (text: string, code: string) => void cuts.push({ text, moment: { code } }),
    silence: () => {
      isSilent = true
    },
    /** Is a line again, for those who connect anew. */
    mend: () => {
      isSilent = false
      cuts.length = 0
      hostile.cut()
    },
    cutAll: () => hostile.cut(),
    end: () => hostile.close(),
  }
  return line
}
