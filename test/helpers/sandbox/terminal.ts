import { spawn } from '@lydell/node-pty'
import { checkSecretsAtEnd } from '../expect/secrets.js'

export type Terminal = ReturnType<typeof openTerminal>

export function openTerminal(
  program: string,
  args: string[],
  folder: string,
  env: Record<string, string>,
  columns = 160,
) {
  const name = 'xterm-256color'
  const pty = spawn(program, args, {
    ...{ name, cols: columns, rows: 24, cwd: folder },
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, TERM: name, ...env },
  })
  let screen = ''
  let seen = 0
  let look = () => {}
  pty.onData((data) => {
    screen += data
    look()
  })
  const ended = new Promise<{ code: number; screen: string }>((resolve) => {
    pty.onExit(({ exitCode, signal }) =>
      resolve({ code: signal ? 128 + signal : exitCode, screen }),
    )
  })
  checkSecretsAtEnd(ended.then(() => ({ argv: args, out: screen })))
  /** Resolves when the screen holds the text, behind what the last call waited for. */
  const see = (text: string) =>
    new Promise<void>((resolve, reject) => {
      look = () => {
        const at = screen.indexOf(text, seen)
        if (at < 0) return
        seen = at + text.length
        resolve()
      }
      look()
      const missing = `The program ended without showing ${JSON.stringify(text)}`
      void ended.then(() => reject(new Error(`${missing}:\n${screen}`)))
    })
  return {
    get screen() {
      return screen
    },
    type: (text: string) => pty.write(text),
    see,
    /** Waits for each question in turn, and types its answer. */
    answer: async (...answers: [question: string, text: string][]) => {
      for (const [question, text] of answers) {
        await see(question)
        pty.write(text)
      }
    },
    kill: (signal: string) => pty.kill(signal),
    ended,
  }
}
