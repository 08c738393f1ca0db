//! Writes without disk room: deletions are decided apart from additions.

use std::collections::HashMap;

use super::answers::Answers;
use super::staging::Staging;
use super::verdict::Verdict;
use super::{Writer, expire};
use crate::board::SessionName;
use crate::service::error::ServiceError;
use crate::service::job::WriterError;

impl Writer {
    /// Decides writes for which together there was no room once more, without those that grow: what a session
    /// removes is not to wait for what it adds.
    pub(crate) fn decide_again(&mut self, refused: Vec<(SessionName, Answers)>) {
        let (mut staged, mut answers) = (HashMap::new(), HashMap::new());
        let reading = self.clock.read();
        for (name, jobs) in refused {
            let mut staging = Staging::cramped(self.directory.get(&name).as_ref(), &self.loads);
            expire(&mut staging, reading.due(), usize::MAX);
            let mut decided = Answers::new();
            for (job, _) in jobs {
                // It may have come to its end by time since.
                let verdict = if staging.is_closed() {
                    Verdict::Failed(WriterError::Service(ServiceError::StoreFull))
                } else {
                    self.stage(&mut staging, &job.order, reading, &[])
                };
                decided.push((job, verdict));
            }
            answers.insert(name.clone(), decided);
            staged.insert(name, staging);
        }
        self.commit(staged, answers);
    }
}
